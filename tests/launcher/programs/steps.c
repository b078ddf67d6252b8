/* steps PROGRAM ARGS...: runs the program and prints how many instructions its main thread executes between two SIGUSR1 that
 * it sends to itself, one at a time by ptrace.  Neither interrupts nor other processes count, as they may with perf's counters.
 * Exit 77: the system does not allow that. */
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t program;

/* The signal that stopped it, which it does not get; 0: it has ended. */
static int go_on(int request) {
  int status;
  if (ptrace(request, program, NULL, NULL) != 0) return 0;
  if (waitpid(program, &status, 0) != program || !WIFSTOPPED(status)) return 0;
  return WSTOPSIG(status);
}

static int start(char** command) {
  int status;
  program = fork();
  if (program == 0) {
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(77);
    execv(command[0], command);
    _exit(127);
  }
  if (waitpid(program, &status, 0) != program) return 1;
  if (WIFSTOPPED(status)) return 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int words, char** word) {
  if (words < 2) return 2;
  int failed = start(word + 1), stopped;
  if (failed) return failed;
  do stopped = go_on(PTRACE_CONT);
  while (stopped != 0 && stopped != SIGUSR1);
  if (stopped == 0) return 1;
  unsigned long steps = 0;
  while ((stopped = go_on(PTRACE_SINGLESTEP)) == SIGTRAP) ++steps;
  if (stopped != SIGUSR1) return steps == 0 ? 77 : 1; /* an emulator may know ptrace, but no single steps */
  printf("%lu\n", steps);
  while (go_on(PTRACE_CONT) != 0) continue;
  return 0;
}

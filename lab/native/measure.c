/* hmalloc-measure: runs one program and says what it cost.
 *
 * In C because Linux hands a process's peak memory on through fork and exec: started by an interpreter of 20 MB, no
 * program ever seems to need less.  This process is smaller than any that it measures.
 *
 *   hmalloc-measure RESULT_FD STOP_AFTER_MS PRELOAD PROGRAM ARGS...
 *
 * PRELOAD becomes the program's LD_PRELOAD (empty: none).  STOP_AFTER_MS 0 waits for the program's own end; otherwise
 * it gets SIGTERM after that time.  RESULT_FD receives "started PID", then one of
 *   failed ERRNO
 *   ended WAIT_STATUS STOPPED WALL_NS USER_US SYSTEM_US PEAK_KIB MINOR_FAULTS MAJOR_FAULTS VOLUNTARY INVOLUNTARY
 * where all but the times and the status include the descendants that the program waited for. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A server gets this long to end after SIGTERM; then its whole process group is killed. */
static const long long kGraceNs = 10000000000LL;
static const long long kNever = -1;

static long long now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void become_program(int result, const char* preload, char** program, const sigset_t* mask) {
  /* Own group: a program that is stopped takes its children along, this process and its parent stay. */
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigprocmask(SIG_SETMASK, mask, NULL);
  if (*preload) setenv("LD_PRELOAD", preload, 1);
  else unsetenv("LD_PRELOAD");
  execvp(program[0], program);
  dprintf(result, "failed %d\n", errno);
  _exit(127);
}

/* Waits until the program has ended; returns whether it was told to.  All signals in `waited` are blocked. */
static int wait_for_end(pid_t pid, const sigset_t* waited, long long stop_after_ns) {
  long long deadline = stop_after_ns ? now_ns() + stop_after_ns : kNever;
  int told = 0;
  for (;;) {
    siginfo_t ended = {0};
    if (waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == pid) return told;
    long long left = deadline == kNever ? 3600 * 1000000000LL : deadline - now_ns();
    if (left < 0) left = 0;
    struct timespec timeout = {left / 1000000000LL, left % 1000000000LL};
    int signal = sigtimedwait(waited, NULL, &timeout);
    int interrupted = signal == SIGINT || signal == SIGTERM || signal == SIGHUP;
    int due = signal < 0 && errno == EAGAIN && deadline != kNever;
    if (!interrupted && !due) continue;
    if (told) kill(-pid, SIGKILL);
    else kill(pid, SIGTERM);
    told = 1;
    deadline = now_ns() + kGraceNs;
  }
}

int main(int argc, char** argv) {
  if (argc < 5) {
    fprintf(stderr, "usage: hmalloc-measure RESULT_FD STOP_AFTER_MS PRELOAD PROGRAM ARGS...\n");
    return 2;
  }
  int result = atoi(argv[1]);
  long long stop_after_ns = atoll(argv[2]) * 1000000LL;
  fcntl(result, F_SETFD, FD_CLOEXEC);
  prctl(PR_SET_PDEATHSIG, SIGTERM);

  sigset_t waited, before;
  sigemptyset(&waited);
  sigaddset(&waited, SIGCHLD);
  sigaddset(&waited, SIGINT);
  sigaddset(&waited, SIGTERM);
  sigaddset(&waited, SIGHUP);
  sigprocmask(SIG_BLOCK, &waited, &before);

  long long start = now_ns();
  pid_t pid = fork();
  if (pid == 0) become_program(result, argv[3], argv + 4, &before);
  if (pid < 0) {
    dprintf(result, "failed %d\n", errno);
    return 1;
  }
  dprintf(result, "started %d\n", (int)pid);
  int told = wait_for_end(pid, &waited, stop_after_ns);
  long long wall = now_ns() - start;

  int status;
  struct rusage used;
  wait4(pid, &status, 0, &used);
  /* Nothing that a stopped server left behind may run into the next measurement. */
  if (told) kill(-pid, SIGKILL);
  dprintf(result, "ended %d %d %lld %lld %lld %ld %ld %ld %ld %ld\n", status, told, wall,
          used.ru_utime.tv_sec * 1000000LL + used.ru_utime.tv_usec,
          used.ru_stime.tv_sec * 1000000LL + used.ru_stime.tv_usec, used.ru_maxrss, used.ru_minflt, used.ru_majflt,
          used.ru_nvcsw, used.ru_nivcsw);
  return 0;
}

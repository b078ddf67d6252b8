/* The C library holds its own locks around a fork: those of stdio first, those of its malloc last.  An allocator that
 * takes its locks in a handler of pthread_atfork takes them before all of these, and three threads wait in a circle: one
 * that reads a line (it has the FILE and wants memory), one that flushes all files (it has the list of files and wants the
 * FILE), and one that forks (it has the allocator and wants the list). */
#include <stdatomic.h>

#include "case.h"

enum { kReaders = 4, kForkers = 4, kLineLength = 50000 };
static char path[] = "/tmp/conformance_fork_stdio.XXXXXX";
static atomic_int stopping;
static atomic_int children;

static void* read_lines(void* unused) {
  FILE* file = fopen(path, "r");
  REQUIRE(file != NULL);
  while (!atomic_load(&stopping)) {
    char* line = NULL;
    size_t room = 0;
    rewind(file);
    REQUIRE(getline(&line, &room, file) == kLineLength + 1);
    free(line);
  }
  fclose(file);
  return unused;
}

static void* flush_all(void* unused) {
  while (!atomic_load(&stopping)) {
    fflush(NULL);
    usleep(20);
  }
  return unused;
}

static void* fork_on(void* unused) {
  while (!atomic_load(&stopping)) {
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      free(malloc(100));
      _exit(0);
    }
    require_good_end(child);
    atomic_fetch_add(&children, 1);
  }
  return unused;
}

CASE(fork_stdio) {
  static char line[kLineLength + 1];
  memset(line, 'x', kLineLength);
  line[kLineLength] = '\n';
  int fd = mkstemp(path);
  REQUIRE(fd >= 0 && write(fd, line, sizeof line) == (ssize_t)sizeof line && close(fd) == 0);
  pthread_t threads[kReaders + kForkers + 1];
  start_threads(threads, kReaders, read_lines);
  start_threads(threads + kReaders, kForkers, fork_on);
  threads[kReaders + kForkers] = start_thread(flush_all, NULL);
  sleep_ms((long)(1500 * case_seconds()));
  atomic_store(&stopping, 1);
  alarm(30); /* one that hangs takes no part in the end */
  join_threads(threads, COUNT_OF(threads));
  unlink(path);
  REQUIRE(atomic_load(&children) > 0);
}

CASE_MAIN()

/* fork at any moment, from any thread, with handlers that allocate, deep, and from a signal handler. */
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "busy.h"

extern char** environ;

static void allocate_much(void) {
  enum { kBlocks = 2000 };
  static void* blocks[kBlocks];
  for (size_t i = 0; i < kBlocks; i++) blocks[i] = take_marked(1 + i * 7 % 5000, (unsigned)i);
  void* large = memset(take(3 * MIB), 1, 3 * MIB);
  for (size_t i = 0; i < kBlocks; i++) free_marked(blocks[i], 1 + i * 7 % 5000, (unsigned)i);
  free(large);
}

static pid_t clone_bare(void) { return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL); }

static void fork_once(pid_t (*call)(void)) {
  pid_t child = call();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(10);
    allocate_much();
    _exit(0);
  }
  require_good_end(child);
}

/* In turn by one and the other. */
static void fork_often(int times, pid_t (*one)(void), pid_t (*other)(void)) {
  pthread_t threads[4];
  start_threads(threads, 4, allocate_until_stopped);
  for (int i = 0; i < times; i++) fork_once(i % 2 == 0 ? one : other);
  stop(threads, 4);
}

CASE(fork_mt) { fork_often(300, fork, fork); }

/* The C library runs no handlers, and the allocator must see for itself that other threads' locks will never be free. */
CASE(fork_unannounced) { fork_often(200, _Fork, clone_bare); }

enum { kLeft = 3000 };
static void* left[kLeft];

static void* fill_left_and_stay(void* filled) {
  for (unsigned i = 0; i < kLeft; i++) left[i] = take_marked(20 + i % 900, i);
  pthread_barrier_wait((pthread_barrier_t*)filled);
  return allocate_until_stopped(NULL);
}

/* In the child the thread that filled `left` has vanished; its blocks have not. */
static void child_goes_on(void) {
  alarm(10);
  pthread_t threads[3];
  start_threads(threads, COUNT_OF(threads), allocate_until_stopped);
  for (unsigned i = 0; i < kLeft; i++) {
    REQUIRE(is_marked(left[i], 20 + i % 900, i));
    left[i] = realloc(left[i], 1000 + i);
    REQUIRE(left[i] != NULL);
  }
  free_all(left, kLeft);
  allocate_much();
  stop(threads, COUNT_OF(threads));
  exit(0);
}

static void* fork_here(void* unused) {
  free(malloc(100));
  for (int i = 0; i < 20; i++) {
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) child_goes_on();
    require_good_end(child);
  }
  return unused;
}

CASE(fork_from_thread) {
  pthread_barrier_t filled;
  REQUIRE(pthread_barrier_init(&filled, NULL, 2) == 0);
  pthread_t filler = start_thread(fill_left_and_stay, &filled);
  pthread_barrier_wait(&filled);
  join_thread(start_thread(fork_here, NULL));
  stop(&filler, 1);
  free_all(left, kLeft);
}

static void* kept_by_handler;
static void allocate_in_handler(void) {
  free(kept_by_handler);
  for (size_t size = 10; size < 200000; size *= 3) free(malloc(size));
  kept_by_handler = take(3000);
}

CASE(atfork_alloc) {
  REQUIRE(pthread_atfork(allocate_in_handler, allocate_in_handler, allocate_in_handler) == 0);
  fork_often(100, fork, fork);
}

CASE(fork_chain) {
  void* block = take_marked(1000, 3);
  for (int depth = 0; depth < 25; depth++) {
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child != 0) {
      require_good_end(child);
      _exit(0);
    }
    allocate_much();
    REQUIRE(is_marked(block, 1000, 3));
  }
  free(block);
  _exit(0);
}

CASE(spawn_ok) {
  pthread_t threads[4];
  char* arguments[] = {(char*)"true", NULL};
  start_threads(threads, 4, allocate_until_stopped);
  for (int i = 0; i < 20; i++) {
    pid_t child;
    REQUIRE(posix_spawnp(&child, "true", NULL, NULL, arguments, environ) == 0);
    require_good_end(child);
    REQUIRE(system("exit 3") == 3 << 8);
  }
  stop(threads, 4);
}

/* A child of vfork has its parent's memory: it must not take it for its own. */
CASE(vfork_beside) {
  pthread_t threads[4];
  start_threads(threads, 4, allocate_until_stopped);
  for (int i = 0; i < 200; i++) {
    pid_t child = vfork();
    REQUIRE(child >= 0);
    if (child == 0) {
      for (size_t size = 10; size < 200000; size *= 3) free(hidden(malloc(size)));
      _exit(0);
    }
    require_good_end(child);
    free(malloc(1000));
  }
  stop(threads, 4);
}

static pid_t (*fork_in_signal)(void);
static atomic_int forks;

static void fork_and_wait(int number) {
  (void)number;
  int error = errno;
  pid_t child = fork_in_signal();
  if (child == 0) _exit(0);
  if (child > 0) {
    require_good_end(child);
    atomic_fetch_add(&forks, 1);
  }
  errno = error;
}

static void fork_by_timer(pid_t (*call)(void)) {
  fork_in_signal = call;
  struct sigaction action = {.sa_handler = fork_and_wait, .sa_flags = SA_RESTART};
  REQUIRE(sigaction(SIGALRM, &action, NULL) == 0);
  double end = seconds_now() + case_seconds();
  for (size_t i = 1; seconds_now() < end; i = i * 5 % 400009) {
    /* One shot at a time: on a slow machine a periodic timer would leave no time between two forks. */
    struct itimerval timer = {{0, 0}, {0, 500 + (long)i % 3000}};
    int so_far = atomic_load(&forks);
    REQUIRE(setitimer(ITIMER_REAL, &timer, NULL) == 0);
    for (size_t j = i; atomic_load(&forks) == so_far; j = j * 5 % 400009) free(malloc(j));
  }
  REQUIRE(atomic_load(&forks) > 3);
}

/* With one thread even fork, which runs the handlers of everybody, must come through a handler that interrupts malloc. */
CASE(fork_in_handler) { fork_by_timer(fork); }

/* With several, POSIX leaves only _Fork, which calls no handlers. */
CASE(fork_in_handler_mt) {
  pthread_t threads[2];
  start_threads(threads, 2, allocate_until_stopped);
  fork_by_timer(_Fork);
  stop(threads, 2);
}

CASE_MAIN()

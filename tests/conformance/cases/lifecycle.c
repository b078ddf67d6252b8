/* Ends and interruptions: exit while others allocate, main leaving first, late atexit, signals and cancellation. */
#include <signal.h>
#include <sys/time.h>

#include "busy.h"

CASE(exit_while_alloc) {
  for (long round = 0; round < 40; round++) {
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      pthread_t threads[4];
      start_threads(threads, 4, allocate_until_stopped);
      sleep_ms(round % 8);
      exit(0);
    }
    require_good_end(child);
  }
}

static void* allocate_a_while(void* seed) {
  sleep_ms(20);
  uint64_t state = (uint64_t)(uintptr_t)seed + 1;
  for (int i = 0; i < 50000; i++) free(malloc(random_next(&state) % 3000));
  return NULL;
}

/* The process ends, with status 0, when the last of these does. */
CASE(main_pthread_exit) {
  void* block = malloc(5000);
  for (uintptr_t i = 0; i < 4; i++) pthread_detach(start_thread(allocate_a_while, (void*)i));
  free(block);
  pthread_exit(NULL);
}

static void* left_for_exit;
static void allocate_at_exit(void) {
  free(left_for_exit);
  for (size_t size = 1; size < 2 * MIB; size = size * 2 + 1) {
    void* block = take_marked(size, 2);
    if (size % 4 == 1) free(block);
  }
}

CASE(atexit_alloc) {
  left_for_exit = malloc(12345);
  REQUIRE(atexit(allocate_at_exit) == 0);
  pthread_detach(start_thread(allocate_until_stopped, NULL));
}
__attribute__((destructor)) static void allocate_in_destructor(void) { free(malloc(999)); }

static atomic_int signals;
static void count_signal(int number) {
  (void)number;
  atomic_fetch_add_explicit(&signals, 1, memory_order_relaxed);
}

CASE(signal_storm) {
  struct sigaction action = {.sa_handler = count_signal, .sa_flags = SA_RESTART};
  REQUIRE(sigaction(SIGPROF, &action, NULL) == 0);
  struct itimerval timer = {{0, 200}, {0, 200}};
  REQUIRE(setitimer(ITIMER_PROF, &timer, NULL) == 0);
  pthread_t threads[4];
  start_threads(threads, COUNT_OF(threads), allocate_until_stopped);
  /* The signals come by CPU time, of which a busy machine gives little. */
  double end = seconds_now() + case_seconds();
  while (seconds_now() < end || (atomic_load(&signals) <= 50 && seconds_now() < end + 60)) sleep_ms(10);
  stop(threads, COUNT_OF(threads));
  timer = (struct itimerval){{0, 0}, {0, 0}};
  setitimer(ITIMER_PROF, &timer, NULL);
  REQUIRE(atomic_load(&signals) > 50);
}

static void free_held(void* held) { free_all((void**)held, 16); }

static void replace_until_cancelled(void** held, uint64_t state) {
  for (;; pthread_testcancel()) {
    size_t slot = random_next(&state) % 16;
    free(held[slot]);
    held[slot] = malloc(1 + random_next(&state) % 40000);
  }
}

/* Deferred cancellation, as POSIX asks of code that calls malloc: it may strike at the test, with blocks held. */
static void* allocate_until_cancelled(void* seed) {
  void* held[16] = {NULL};
  pthread_cleanup_push(free_held, held);
  replace_until_cancelled(held, (uintptr_t)seed + 1);
  pthread_cleanup_pop(1);
  return NULL;
}

CASE(cancel_storm) {
  enum { kAtOnce = 5 };
  pthread_t threads[kAtOnce];
  for (int round = 0; round < 1500 / kAtOnce; round++) {
    start_threads(threads, kAtOnce, allocate_until_cancelled);
    if (round % 3 == 0) sleep_ms(1);
    for (int i = 0; i < kAtOnce; i++) REQUIRE(pthread_cancel(threads[i]) == 0);
    for (int i = 0; i < kAtOnce; i++) REQUIRE(join_thread(threads[i]) == PTHREAD_CANCELED);
  }
  allocate_a_while(NULL);
}

CASE_MAIN()

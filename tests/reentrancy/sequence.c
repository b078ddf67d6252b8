/* One program each for what a thread that an allocator starts by itself would break, and for what a call of itself in the
 * middle of an operation did. */
#include <malloc.h>
#include <sched.h>
#include <sys/stat.h>

#include "case.h"

/* Without an allocation: each thread has a directory. */
static size_t threads_of_process(void) {
  struct stat tasks;
  REQUIRE(stat("/proc/self/task", &tasks) == 0);
  return (size_t)tasks.st_nlink - 2;
}

/* A heap that was large and shrinks: what makes an allocator think of the memory that lies idle. */
enum { kBlocks = 400000 };
static void* blocks[kBlocks];
static void grow_and_shrink(void) {
  for (size_t i = 0; i < kBlocks; i++) mark(blocks[i] = malloc(64), 64, 1);
  free_all(blocks, kBlocks);
  for (size_t i = 0; i < kBlocks / 2; i++) blocks[i] = take(128);
  free_all(blocks, kBlocks / 2);
}

/* While the heap ticks, in the middle of its refills: every block has the room that was asked for, and is one's own.
 * Another thread frees most, and leaves holes in the first 64 blocks of each superblock, so that a refill brings more or
 * less, and two at once more than their cache has slots. */
enum { kTicking = 306000, kTicked = 320 };
static void* free_most(void* unused) {
  for (size_t i = 0; i < kTicking; i++) {
    size_t place = (uintptr_t)blocks[i] % (32 * KIB) / kTicked;
    if (place < 64 && place % 5 == 0) continue;
    free(blocks[i]);
    blocks[i] = NULL;
  }
  return unused;
}
CASE(nested_refill) {
  static void* fresh[2 * kTicking];
  static void* neighbours[40];
  mark(hidden(malloc(384)), 384, 1);
  for (size_t i = 0; i < kTicking; i++) {
    REQUIRE((blocks[i] = malloc(kTicked)) != NULL);
    for (int small = 0; small < 30 && i % 20 == 0; small++) REQUIRE(hidden(malloc(64)) != NULL);
  }
  join_thread(start_thread(free_most, NULL));
  for (size_t i = 0; i < 2 * kTicking; i++) {
    mark(fresh[i] = malloc(kTicked), kTicked, (unsigned)i);
    /* One thread more was made with blocks of this size: the next class shows what is left of the refill. */
    if (i % 64 == 0 && threads_of_process() > 1) break;
  }
  for (size_t i = 0; i < COUNT_OF(neighbours); i++) {
    mark(neighbours[i] = malloc(384), 384, 77);
    REQUIRE(malloc_usable_size(neighbours[i]) >= 384);
  }
  for (size_t i = 0; i < 2 * kTicking && fresh[i] != NULL; i++) REQUIRE(is_marked(fresh[i], kTicked, (unsigned)i));
}

/* libc frees what threads were made with under the lock of its stacks. */
static void* body(void* barrier) {
  void* block = malloc(3000);
  if (barrier != NULL) pthread_barrier_wait((pthread_barrier_t*)barrier);
  free(block);
  return NULL;
}
static void churn(size_t count, int all_at_once) {
  static pthread_t made[3000];
  pthread_barrier_t barrier;
  pthread_attr_t small;
  REQUIRE(count <= COUNT_OF(made) && pthread_barrier_init(&barrier, NULL, (unsigned)count) == 0);
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, MIB);
  for (size_t i = 0; i < count; i++) REQUIRE(pthread_create(&made[i], &small, body, all_at_once ? &barrier : NULL) == 0);
  join_threads(made, count);
}
CASE(join_ends) {
  for (size_t i = 0; i < kBlocks; i++) mark(blocks[i] = malloc(64), 64, 1);
  churn(3000, 0);
  /* A thread that was joined may still be on its way out of the kernel. */
  for (int i = 0; threads_of_process() != 1 && i < 5000; i++) sleep_ms(1);
  REQUIRE(threads_of_process() == 1);
}
CASE(exit_of_threads_ends) {
  for (size_t i = 0; i < 32000; i++) mark(blocks[i] = malloc(1000), 1000, 1);
  for (int round = 0; round < 3; round++) churn(1500, 1);
}

static void* grow_shrink_and_leave(void* unused) {
  grow_and_shrink();
  return unused;
}
/* The process ends with its last thread. */
CASE(main_leaves) {
  REQUIRE(pthread_detach(start_thread(grow_shrink_and_leave, NULL)) == 0);
  pthread_exit(NULL);
}

/* A program that has made no thread has one: the system asks that of whoever wants a user namespace of his own, and
 * whoever forks relies on it. */
CASE(one_thread) {
  pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) _exit(unshare(CLONE_NEWUSER) == 0 ? 0 : errno);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status));
  grow_and_shrink();
  for (int i = 0; i < 30; i++) free(hidden(malloc(20 * MIB)));
  sleep_ms(50);
  REQUIRE(threads_of_process() == 1);
  if (WEXITSTATUS(status) == 0) REQUIRE(unshare(CLONE_NEWUSER) == 0); /* else nobody here may */
}

/* sequence CASE [TIMES]: each time a process of its own. */
int main(int argc, char** argv) {
  int times = argc > 2 ? atoi(argv[2]) : 1;
  for (int i = 1; i < times; i++) {
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      alarm(120);
      return run_named_case(argc, argv);
    }
    require_good_end(child);
  }
  return run_named_case(argc, argv);
}

/* Many threads: in turn, at once, and leaving blocks behind. */
#include "case.h"

static void start_small(pthread_t* threads, size_t count, size_t stack, void* (*body)(void*)) {
  pthread_attr_t attributes;
  REQUIRE(pthread_attr_init(&attributes) == 0 && pthread_attr_setstacksize(&attributes, stack) == 0);
  for (size_t i = 0; i < count; i++) REQUIRE(pthread_create(&threads[i], &attributes, body, NULL) == 0);
  pthread_attr_destroy(&attributes);
}

static void* use_a_little(void* unused) {
  for (size_t size = 1; size < 20000; size = size * 2 + 3) free_marked(take_marked(size, 1), size, 1);
  return unused;
}

CASE(thread_10k) {
  for (int i = 0; i < 50; i++) join_thread(start_thread(use_a_little, NULL));
  size_t resident = resident_bytes(), mapped = mapped_bytes();
  for (int i = 0; i < 10000; i++) join_thread(start_thread(use_a_little, NULL));
  REQUIRE_BELOW(growth(resident_bytes(), resident), 32 * MIB);
  REQUIRE_BELOW(growth(mapped_bytes(), mapped), 1024 * MIB);
}

static size_t kept_size(size_t i) { return 16 + i * 37 % 1500; }

static void* leave_one_block(void* slot) {
  void** block = (void**)slot;
  size_t i = (size_t)(uintptr_t)*block;
  *block = take_marked(kept_size(i), (unsigned)i);
  return NULL;
}

CASE(thread_10k_kept) {
  enum { kThreads = 10000 };
  static void* blocks[kThreads];
  size_t resident = resident_bytes();
  for (size_t i = 0; i < kThreads; i++) {
    blocks[i] = (void*)(uintptr_t)i;
    join_thread(start_thread(leave_one_block, &blocks[i]));
  }
  REQUIRE_BELOW(growth(resident_bytes(), resident), 128 * MIB);
  for (size_t i = 0; i < kThreads; i++) free_marked(blocks[i], kept_size(i), (unsigned)i);
}

static pthread_barrier_t all_alive;
static pthread_barrier_t measured;

static void* live_with_one_block(void* unused) {
  void* block = take_marked(100, 1);
  pthread_barrier_wait(&all_alive);
  pthread_barrier_wait(&measured);
  free_marked(block, 100, 1);
  return unused;
}

CASE(threads_1000_alive) {
  enum { kThreads = 1000 };
  static pthread_t threads[kThreads];
  REQUIRE(pthread_barrier_init(&all_alive, NULL, kThreads + 1) == 0);
  REQUIRE(pthread_barrier_init(&measured, NULL, kThreads + 1) == 0);
  start_small(threads, kThreads, 128 * KIB, live_with_one_block);
  pthread_barrier_wait(&all_alive);
  size_t resident = resident_bytes();
  pthread_barrier_wait(&measured);
  join_threads(threads, kThreads);
  REQUIRE_BELOW(resident, 150 * MIB);
}

static void* every_size(void* unused) {
  void* kept[64];
  size_t count = 0;
  for (size_t size = 1; size < 9 * MIB && count < COUNT_OF(kept); size += size / 2 + 1)
    REQUIRE((kept[count++] = realloc(calloc(1, size), size * 2)) != NULL);
  for (size_t i = 0; i < 30000; i++) free(malloc(i % 3000));
  free_all(kept, count);
  return unused;
}

CASE(small_stack) {
  pthread_t threads[4];
  for (int round = 0; round < 20; round++) {
    start_small(threads, COUNT_OF(threads), (size_t)sysconf(_SC_THREAD_STACK_MIN), every_size);
    join_threads(threads, COUNT_OF(threads));
  }
}

CASE_MAIN()

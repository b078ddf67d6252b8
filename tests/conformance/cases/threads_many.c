/* Many threads: in turn, at once, and leaving blocks behind. */
#include "stats.h"

static pthread_t start_small(void* (*body)(void*), void* argument) {
  pthread_attr_t attributes;
  pthread_t thread;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstacksize(&attributes, 128 * KIB) == 0);
  REQUIRE(pthread_create(&thread, &attributes, body, argument) == 0);
  pthread_attr_destroy(&attributes);
  return thread;
}

static void* use_a_little(void* unused) {
  (void)unused;
  for (size_t size = 1; size < 20000; size = size * 2 + 3) {
    char* block = (char*)malloc(size);
    REQUIRE(block != NULL);
    block[size - 1] = 1;
    free(block);
  }
  return NULL;
}

CASE(thread_10k) {
  for (int i = 0; i < 50; i++) join_thread(start_thread(use_a_little, NULL));
  size_t resident = resident_bytes();
  size_t mapped = mapped_bytes();
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
  (void)unused;
  void* block = take_marked(100, 1);
  pthread_barrier_wait(&all_alive);
  pthread_barrier_wait(&measured);
  free_marked(block, 100, 1);
  return NULL;
}

CASE(threads_1000_alive) {
  enum { kThreads = 1000 };
  static pthread_t threads[kThreads];
  REQUIRE(pthread_barrier_init(&all_alive, NULL, kThreads + 1) == 0);
  REQUIRE(pthread_barrier_init(&measured, NULL, kThreads + 1) == 0);
  for (int i = 0; i < kThreads; i++) threads[i] = start_small(live_with_one_block, NULL);
  pthread_barrier_wait(&all_alive);
  size_t resident = resident_bytes();
  pthread_barrier_wait(&measured);
  join_threads(threads, kThreads);
  REQUIRE_BELOW(resident, 150 * MIB);
}

static void* every_size(void* unused) {
  (void)unused;
  void* kept[64];
  size_t count = 0;
  for (size_t size = 1; size < 9 * MIB; size += size / 2 + 1) {
    void* block = realloc(calloc(1, size), size * 2);
    REQUIRE(block != NULL);
    if (count < COUNT_OF(kept)) kept[count++] = block;
  }
  for (size_t i = 0; i < 30000; i++) free(malloc(i % 3000));
  while (count > 0) free(kept[--count]);
  return NULL;
}

CASE(small_stack) {
  pthread_attr_t attributes;
  pthread_t threads[4];
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstacksize(&attributes, (size_t)sysconf(_SC_THREAD_STACK_MIN)) == 0);
  for (int round = 0; round < 20; round++) {
    for (size_t i = 0; i < COUNT_OF(threads); i++) REQUIRE(pthread_create(&threads[i], &attributes, every_size, NULL) == 0);
    join_threads(threads, COUNT_OF(threads));
  }
}

CASE_MAIN()

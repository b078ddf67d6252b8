/* Memory back to the system: asked for, by itself, and from under an owner that sleeps. */
#include <malloc.h>

#include "stats.h"

enum { kSize = 1000 };
static const size_t kHeld = 250 * MIB / kSize;

static void fill_blocks(void** blocks) {
  for (size_t i = 0; i < kHeld; i++) {
    blocks[i] = take(kSize);
    memset(blocks[i], 1, kSize);
  }
}

/* The pointers lie outside the allocator under test, so that they do not count. */
static void** pointers(void) {
  static void* blocks[250 * MIB / kSize];
  return blocks;
}

static void light_activity(void) {
  for (int i = 0; i < 200; i++) free(malloc(16 + (size_t)i * 20));
}

static void require_return(size_t peak) {
  double end = seconds_now() + case_patience();
  while (resident_bytes() >= peak / 2 && seconds_now() < end) {
    light_activity();
    sleep_ms(20);
  }
  REQUIRE_BELOW(resident_bytes(), peak / 2);
}

CASE(return_to_os) {
  void** blocks = pointers();
  fill_blocks(blocks);
  size_t peak = resident_bytes();
  for (size_t i = 0; i < kHeld; i++) free(blocks[i]);
  malloc_trim(0);
  require_return(peak);
}

CASE(return_by_decay) {
  void** blocks = pointers();
  fill_blocks(blocks);
  size_t peak = resident_bytes();
  for (size_t i = 0; i < kHeld; i++) free(blocks[i]);
  require_return(peak);
}

static pthread_barrier_t step;

static void* own_and_sleep(void* blocks) {
  fill_blocks((void**)blocks);
  pthread_barrier_wait(&step);
  pthread_barrier_wait(&step);
  return NULL;
}

static void* free_half(void* blocks) {
  for (size_t i = 0; i < kHeld / 2; i++) free(((void**)blocks)[i]);
  return NULL;
}

CASE(idle_owner) {
  void** blocks = pointers();
  REQUIRE(pthread_barrier_init(&step, NULL, 2) == 0);
  pthread_t owner = start_thread(own_and_sleep, blocks);
  pthread_barrier_wait(&step);
  size_t peak = resident_bytes();
  pthread_t first = start_thread(free_half, blocks);
  pthread_t second = start_thread(free_half, blocks + kHeld / 2);
  join_thread(first);
  join_thread(second);
  int (*collect)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "hm_collect");
  if (collect != NULL) collect();
  else malloc_trim(0);
  size_t after = resident_bytes();
  pthread_barrier_wait(&step);
  join_thread(owner);
  REQUIRE_BELOW(after, peak / 2);
}

CASE_MAIN()

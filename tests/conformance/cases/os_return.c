/* Memory back to the system: asked for, by itself, and from under an owner that sleeps. */
#include <dlfcn.h>
#include <malloc.h>

#include "case.h"

enum { kSize = 1000, kHeld = 250 * 1024 * 1024 / kSize };
static void* blocks[kHeld]; /* outside the allocator under test, so that the pointers do not count */

/* What is resident then. */
static size_t fill_blocks(void) {
  for (size_t i = 0; i < kHeld; i++) memset(blocks[i] = take(kSize), 1, kSize);
  return resident_bytes();
}

static void require_return(size_t peak) {
  double end = seconds_now() + case_patience();
  while (resident_bytes() >= peak / 2 && seconds_now() < end) {
    for (size_t i = 0; i < 200; i++) free(malloc(16 + i * 20)); /* light activity */
    sleep_ms(20);
  }
  REQUIRE_BELOW(resident_bytes(), peak / 2);
}

CASE(return_to_os) {
  size_t peak = fill_blocks();
  free_all(blocks, kHeld);
  malloc_trim(0);
  require_return(peak);
}

CASE(return_by_decay) {
  size_t peak = fill_blocks();
  free_all(blocks, kHeld);
  require_return(peak);
}

static pthread_barrier_t step;

static void* own_and_sleep(void* unused) {
  fill_blocks();
  pthread_barrier_wait(&step);
  pthread_barrier_wait(&step);
  return unused;
}

static void* free_half(void* half) {
  free_all(blocks + (uintptr_t)half * (kHeld / 2), kHeld / 2);
  return NULL;
}

CASE(idle_owner) {
  REQUIRE(pthread_barrier_init(&step, NULL, 2) == 0);
  pthread_t owner = start_thread(own_and_sleep, NULL);
  pthread_barrier_wait(&step);
  size_t peak = resident_bytes();
  run_threads(2, free_half);
  int (*collect)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "hm_collect");
  if (collect != NULL) collect();
  else malloc_trim(0);
  size_t after = resident_bytes();
  pthread_barrier_wait(&step);
  join_thread(owner);
  REQUIRE_BELOW(after, peak / 2);
}

CASE_MAIN()

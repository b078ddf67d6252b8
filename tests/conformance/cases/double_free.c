/* Double frees, by how far the second lies from the first: in time, in other frees, in threads. */
#include <malloc.h>

#include "case.h"

enum { kOthers = 50000 };
static void* others[2 * kOthers];

static void* take(size_t size) {
  void* block = malloc(hidden_size(size));
  REQUIRE(block != NULL);
  memset(block, 1, size);
  return hidden(block);
}

static void free_now_and_again(size_t size) {
  void* block = take(size);
  free(block);
  free(hidden(block));
}

static void df_small(void) { free_now_and_again(100); }
static void df_medium(void) { free_now_and_again(20000); }
static void df_large(void) { free_now_and_again(MIB); }
static void df_huge(void) { free_now_and_again(64 * MIB); }

/* A few other frees lie between: the block still waits in a cache. */
static void free_with_others_between(size_t size) {
  for (size_t i = 0; i < 16; i++) others[i] = take(size);
  void* block = take(size);
  free(block);
  for (size_t i = 0; i < 16; i++) free(others[i]);
  free(hidden(block));
}

static void df_delayed(void) { free_with_others_between(100); }
static void df_medium_delayed(void) { free_with_others_between(20000); }

/* So many frees, and a trim, that the block has left every cache. */
static void df_far(void) {
  for (size_t i = 0; i < COUNT_OF(others); i++) others[i] = take(100);
  void* block = take(100);
  for (size_t i = 0; i < kOthers; i++) free(others[i]);
  free(block);
  for (size_t i = kOthers; i < COUNT_OF(others); i++) free(others[i]);
  malloc_trim(0);
  free(hidden(block));
}

static void* free_it(void* block) {
  free(block);
  return NULL;
}

/* Freed by a thread that ended, whose caches a trim has emptied. */
static void df_cross(void) {
  void* block = take(100);
  join_thread(start_thread(free_it, block));
  malloc_trim(0);
  free(hidden(block));
}

static pthread_barrier_t step;

static void* free_it_and_stay(void* block) {
  free(block);
  pthread_barrier_wait(&step);
  pthread_barrier_wait(&step);
  return NULL;
}

/* Freed by a thread that lives and keeps it in its cache. */
static void df_cross2(void) {
  REQUIRE(pthread_barrier_init(&step, NULL, 2) == 0);
  void* block = take(100);
  pthread_t thread = start_thread(free_it_and_stay, block);
  pthread_barrier_wait(&step);
  free(hidden(block));
  pthread_barrier_wait(&step);
  join_thread(thread);
}

/* The block has a new holder: the second free is as good as his own. */
static void df_reused(void) {
  void* block = take(100);
  free(block);
  void* again = take(100);
  free(hidden(block));
  (void)hidden(again);
}

static const Case cases[] = {{"df_small", df_small},
                             {"df_medium", df_medium},
                             {"df_large", df_large},
                             {"df_huge", df_huge},
                             {"df_delayed", df_delayed},
                             {"df_medium_delayed", df_medium_delayed},
                             {"df_far", df_far},
                             {"df_cross", df_cross},
                             {"df_cross2", df_cross2},
                             {"df_reused", df_reused}};
CASE_MAIN(cases)

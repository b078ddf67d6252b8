/* For every way of linking: threads, all sizes, and the proof that it is hmalloc that serves. */
#include <malloc.h>

#include "case.h"
#include "hmalloc/hmalloc_local.h"

static void* work(void* kept) {
  for (size_t size = 1; size < 5 * MIB; size = size * 3 / 2 + 1) {
    void* block = realloc(calloc(1, size), size * 2);
    REQUIRE(block != NULL);
    mark(block, size * 2, 1);
    free(block);
  }
  void *local = hm_local_alloc(40), *shared = hm_shared_alloc(40);
  REQUIRE(local != NULL && shared != NULL);
  hm_local_free(local);
  hm_shared_free(shared);
  free(kept);
  return malloc(100);
}

CASE(linked) {
  REQUIRE(strcmp(hm_version(), HM_VERSION_STRING) == 0);
  for (int i = 0; i < 50; i++) {
    pthread_t first = start_thread(work, malloc(10));
    pthread_t second = start_thread(work, memalign(256, 10000));
    free(join_thread(first));
    free(join_thread(second));
  }
  struct hm_stats stats;
  hm_stats_get(&stats);
  REQUIRE(stats.mapped > 0 && stats.heaps > 0);
}

CASE_MAIN()

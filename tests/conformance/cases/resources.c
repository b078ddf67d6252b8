/* Address space runs out: RLIMIT_AS. */
#include "exhaust.h"

CASE(oom_rlimit) {
  free(malloc(1));
  limit(RLIMIT_AS, mapped_bytes() + 96 * MIB);
  exhaust_and_recover();
}

/* The threads exist before the limit does: only their first malloc meets it. */
static pthread_barrier_t limit_set;

static void* first_malloc_meets_limit(void* unused) {
  (void)unused;
  pthread_barrier_wait(&limit_set);
  for (size_t size = 1; size < 2 * MIB; size = size * 3 / 2 + 1) {
    errno = 0;
    unsigned char* block = (unsigned char*)malloc(size);
    if (block == NULL) {
      REQUIRE(errno == ENOMEM);
      continue;
    }
    mark(block, size, 11);
    free_marked(block, size, 11);
  }
  return NULL;
}

CASE(oom_new_thread) {
  enum { kThreads = 8 };
  pthread_t threads[kThreads];
  REQUIRE(pthread_barrier_init(&limit_set, NULL, kThreads + 1) == 0);
  start_threads(threads, kThreads, first_malloc_meets_limit);
  limit(RLIMIT_AS, mapped_bytes());
  pthread_barrier_wait(&limit_set);
  join_threads(threads, kThreads);
}

CASE(oom_realloc) {
  enum { kBlocks = 5 };
  const size_t sizes[kBlocks] = {40, 3000, 60000, MIB, 20 * MIB};
  void* blocks[kBlocks];
  for (unsigned i = 0; i < kBlocks; i++) blocks[i] = take_marked(sizes[i], i);
  limit(RLIMIT_AS, mapped_bytes() + 96 * MIB);
  for (unsigned i = 0; i < kBlocks; i++) {
    errno = 0;
    REQUIRE(realloc(blocks[i], hidden_size(512 * MIB)) == NULL && errno == ENOMEM);
    REQUIRE(is_marked(blocks[i], sizes[i], i));
    void* smaller = realloc(blocks[i], sizes[i] / 2 + 1);
    REQUIRE(smaller != NULL && ((unsigned char*)smaller)[0] == i % 255 + 1);
    free(smaller);
  }
}

CASE_MAIN()

/* Sizes that cannot be: each function says NULL and ENOMEM, and a block that was to grow is left as it was. */
#include <malloc.h>

#include "case.h"

typedef void* (*Request)(void* old, size_t size);

static void* by_malloc(void* old, size_t size) {
  (void)old;
  return malloc(size);
}
static void* by_calloc(void* old, size_t size) {
  (void)old;
  return calloc(1, size);
}
static void* by_calloc_turned(void* old, size_t size) {
  (void)old;
  return calloc(size, 1);
}
static void* by_realloc(void* old, size_t size) { return realloc(old, size); }
static void* by_reallocarray(void* old, size_t size) { return reallocarray(old, 1, size); }
static void* by_memalign(void* old, size_t size) {
  (void)old;
  return memalign(64, size);
}
static void* by_aligned_alloc(void* old, size_t size) {
  (void)old;
  return aligned_alloc(4096, size);
}
static void* by_valloc(void* old, size_t size) {
  (void)old;
  return valloc(size);
}
static void* by_pvalloc(void* old, size_t size) {
  (void)old;
  return pvalloc(size);
}
static void* by_posix_memalign(void* old, size_t size) {
  void* block = old;
  errno = posix_memalign(&block, 1024, size);
  return block == old ? NULL : block;
}

static const Request requests[] = {by_malloc,   by_calloc,        by_calloc_turned, by_realloc, by_reallocarray,
                                   by_memalign, by_aligned_alloc, by_valloc,        by_pvalloc, by_posix_memalign};

CASE(huge_sizes) {
  const size_t sizes[] = {
      SIZE_MAX,         SIZE_MAX - 1,        SIZE_MAX - 7,       SIZE_MAX - 15,         SIZE_MAX - 16,      SIZE_MAX - 63,
      SIZE_MAX - 71,    SIZE_MAX - 4095,     SIZE_MAX - 4096,    SIZE_MAX - 65536,      SIZE_MAX - 4 * MIB, SIZE_MAX / 2 + 2,
      SIZE_MAX / 2 + 1, (size_t)PTRDIFF_MAX, PTRDIFF_MAX - 4096, PTRDIFF_MAX - 4 * MIB, (size_t)1 << 62};
  for (size_t old_size = 24; old_size <= 8 * MIB; old_size *= 600) {
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
      for (size_t j = 0; j < COUNT_OF(requests); j++) {
        void* old = take_marked(old_size, 3);
        errno = 0;
        REQUIRE(requests[j](old, hidden_size(sizes[i])) == NULL);
        REQUIRE(errno == ENOMEM);
        free_marked(old, old_size, 3);
      }
    }
  }
}

/* The alignment itself may be what cannot be had. */
CASE(huge_alignments) {
  for (unsigned shift = 48; shift < 64; shift++) {
    void* block = NULL;
    errno = 0;
    REQUIRE(posix_memalign(&block, hidden_size((size_t)1 << shift), 64) == ENOMEM && block == NULL);
    REQUIRE(aligned_alloc(hidden_size((size_t)1 << shift), hidden_size(64)) == NULL && errno == ENOMEM);
  }
}

CASE(mul_overflow) {
  const size_t factors[][2] = {{(size_t)1 << 32, (size_t)1 << 32},
                               {SIZE_MAX / 2 + 1, 2},
                               {SIZE_MAX, SIZE_MAX},
                               {SIZE_MAX / 16 + 1, 16},
                               {3, SIZE_MAX / 3 + 1},
                               {((size_t)1 << 33) + 1, (size_t)1 << 31}};
  for (size_t i = 0; i < COUNT_OF(factors); i++) {
    size_t count = hidden_size(factors[i][0]);
    size_t size = hidden_size(factors[i][1]);
    errno = 0;
    REQUIRE(calloc(count, size) == NULL && errno == ENOMEM);
    void* old = malloc(100);
    mark(old, 100, 5);
    errno = 0;
    REQUIRE(reallocarray(old, count, size) == NULL && errno == ENOMEM);
    errno = 0;
    REQUIRE(reallocarray(NULL, count, size) == NULL && errno == ENOMEM);
    free_marked(old, 100, 5);
  }
}

CASE_MAIN()

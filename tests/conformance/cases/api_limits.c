/* Sizes that cannot be: each function says NULL and ENOMEM, and a block that was to grow is left as it was. */
#include <malloc.h>

#include "case.h"

enum { kFunctions = 10 };

/* One function of the family after another. */
static void* ask(int function, void* old, size_t size) {
  void* block = NULL;
  switch (function) {
    case 0: return malloc(size);
    case 1: return calloc(1, size);
    case 2: return calloc(size, 1);
    case 3: return realloc(old, size);
    case 4: return reallocarray(old, 1, size);
    case 5: return memalign(64, size);
    case 6: return aligned_alloc(4096, size);
    case 7: return valloc(size);
    case 8: return pvalloc(size);
    default: errno = posix_memalign(&block, 1024, size); return block;
  }
}

CASE(huge_sizes) {
  const size_t sizes[] = {
      SIZE_MAX,         SIZE_MAX - 1,        SIZE_MAX - 7,       SIZE_MAX - 15,         SIZE_MAX - 16,      SIZE_MAX - 63,
      SIZE_MAX - 71,    SIZE_MAX - 4095,     SIZE_MAX - 4096,    SIZE_MAX - 65536,      SIZE_MAX - 4 * MIB, SIZE_MAX / 2 + 2,
      SIZE_MAX / 2 + 1, (size_t)PTRDIFF_MAX, PTRDIFF_MAX - 4096, PTRDIFF_MAX - 4 * MIB, (size_t)1 << 62};
  for (size_t old_size = 24; old_size <= 8 * MIB; old_size *= 600) {
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
      for (int function = 0; function < kFunctions; function++) {
        void* old = take_marked(old_size, 3);
        errno = 0;
        REQUIRE(ask(function, old, hidden_size(sizes[i])) == NULL && errno == ENOMEM);
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
    errno = 0;
    REQUIRE(reallocarray(NULL, count, size) == NULL && errno == ENOMEM);
    void* old = take_marked(100, 5);
    errno = 0;
    REQUIRE(reallocarray(old, count, size) == NULL && errno == ENOMEM);
    free_marked(old, 100, 5);
  }
}

CASE_MAIN()

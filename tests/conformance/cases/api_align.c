/* memalign, posix_memalign, aligned_alloc, valloc and pvalloc: every alignment, and the bad ones. */
#include <malloc.h>

#include "case.h"

static void use_aligned(void* block, size_t alignment, size_t size) {
  REQUIRE(block != NULL && (uintptr_t)block % alignment == 0);
  REQUIRE(malloc_usable_size(block) >= size);
  mark(block, size, 7);
  REQUIRE(is_marked(block, size, 7));
}

CASE(memalign_all) {
  const size_t sizes[] = {1, 24, 1000, 5000, 100000, 3 * MIB};
  for (size_t alignment = 8; alignment <= 64 * MIB; alignment *= 2) {
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
      void* posix = NULL;
      REQUIRE(posix_memalign(&posix, alignment, sizes[i]) == 0);
      void* blocks[] = {memalign(alignment, sizes[i]), posix, aligned_alloc(alignment, alignment)};
      use_aligned(blocks[0], alignment, sizes[i]);
      use_aligned(blocks[1], alignment, sizes[i]);
      use_aligned(blocks[2], alignment, alignment);
      REQUIRE(is_marked(blocks[0], sizes[i], 7));
      blocks[0] = realloc(blocks[0], sizes[i] * 2);
      blocks[1] = realloc(blocks[1], sizes[i] / 2 + 1);
      for (int moved = 0; moved < 2; moved++) REQUIRE(blocks[moved] != NULL && ((unsigned char*)blocks[moved])[0] == 8);
      free_all(blocks, COUNT_OF(blocks));
    }
  }
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  for (size_t i = 0; i < COUNT_OF(sizes); i++) {
    void* whole = valloc(sizes[i]);
    void* rounded = pvalloc(sizes[i]);
    use_aligned(whole, page, sizes[i]);
    use_aligned(rounded, page, (sizes[i] + page - 1) / page * page);
    free(whole);
    free(rounded);
  }
}

/* Many aligned blocks alive at once must not overlap: alignment by over-allocation goes wrong here first. */
CASE(memalign_many) {
  enum { kBlocks = 600 };
  static void* blocks[kBlocks];
  for (size_t alignment = 8; alignment <= 16384; alignment *= 2) {
    for (size_t i = 0; i < kBlocks; i++) {
      REQUIRE((blocks[i] = memalign(alignment, 1 + i * 7)) != NULL && (uintptr_t)blocks[i] % alignment == 0);
      mark(blocks[i], 1 + i * 7, (unsigned)i);
    }
    for (size_t i = 0; i < kBlocks; i++) free_marked(blocks[i], 1 + i * 7, (unsigned)i);
  }
}

CASE(memalign_errors) {
  const size_t bad[] = {0, 1, 2, 3, 4, 5, 7, 12, 24, 4097, SIZE_MAX, SIZE_MAX / 2, (size_t)1 << 63 | 8};
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    void* block = &block;
    errno = 4242;
    REQUIRE(posix_memalign(&block, hidden_size(bad[i]), 100) == EINVAL && block == &block && errno == 4242);
  }
  /* Of errno POSIX says nothing when memory runs out, and glibc does set it. */
  void* block = &block;
  REQUIRE(posix_memalign(&block, 64, hidden_size(SIZE_MAX - 100)) == ENOMEM && block == &block);
}

CASE(aligned_alloc_bad) {
  const size_t bad[] = {0, 3, 5, 12, 24, 4097, SIZE_MAX};
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    errno = 0;
    REQUIRE(aligned_alloc(hidden_size(bad[i]), 96) == NULL && errno == EINVAL);
  }
}

/* A power of two that no block can be aligned to is one all the same; above the largest there is none to round up to. */
CASE(memalign_wide) {
  const size_t largest = (size_t)1 << 63;
  const size_t sizes[] = {1, 4096, PTRDIFF_MAX, SIZE_MAX};
  for (size_t i = 0; i < COUNT_OF(sizes); i++) {
    for (size_t alignment = largest; alignment > (size_t)1 << 60; alignment /= 2) {
      errno = 0;
      REQUIRE(memalign(hidden_size(alignment), hidden_size(sizes[i])) == NULL && errno == ENOMEM);
    }
    errno = 0;
    REQUIRE(memalign(hidden_size(largest + 1), hidden_size(sizes[i])) == NULL && errno == EINVAL);
  }
}

/* Programs end over a 0. */
CASE(mallopt_accepted) {
  REQUIRE(mallopt(M_ARENA_MAX, 2) == 1 && mallopt(M_TRIM_THRESHOLD, 1 << 20) == 1 && mallopt(12345, 0) == 1);
}

CASE_MAIN()

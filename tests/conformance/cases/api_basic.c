/* Sizes, alignment, usable size, errno and zeroing: what a single thread sees of malloc, calloc and free. */
#include <malloc.h>

#include "case.h"

CASE(zero_size) {
  void* blocks[300];
  for (size_t i = 0; i < COUNT_OF(blocks); i += 3) {
    blocks[i] = malloc(hidden_size(0));
    blocks[i + 1] = calloc(hidden_size(0), i);
    blocks[i + 2] = realloc(NULL, hidden_size(0));
  }
  for (size_t i = 0; i < COUNT_OF(blocks); i++) {
    REQUIRE(blocks[i] != NULL);
    for (size_t j = 0; j < i; j++) REQUIRE(blocks[i] != blocks[j]);
  }
  for (size_t i = 0; i < COUNT_OF(blocks); i++) free(blocks[i]);
}

static size_t natural_alignment(size_t size) {
  size_t alignment = 1;
  while (alignment * 2 <= size && alignment < 16) alignment *= 2;
  return alignment;
}

CASE(align_sizes) {
  for (size_t size = 1; size <= 70000; size++) {
    char* block = (char*)malloc(size);
    REQUIRE(block != NULL && (uintptr_t)block % natural_alignment(size) == 0);
    REQUIRE(malloc_usable_size(block) >= size);
    block[0] = block[size - 1] = 1;
    free(block);
  }
}

CASE(align16_strict) {
  for (size_t size = 0; size <= 4096; size++) {
    void* plain = malloc(size);
    void* cleared = calloc(1, size);
    void* grown = realloc(malloc(1), size + 1);
    REQUIRE(plain != NULL && cleared != NULL && grown != NULL);
    REQUIRE(((uintptr_t)plain | (uintptr_t)cleared | (uintptr_t)grown) % 16 == 0);
    free(plain);
    free(cleared);
    free(grown);
  }
}

CASE(usable_size) {
  enum { kNeighbours = 64 };
  void* blocks[kNeighbours];
  REQUIRE(malloc_usable_size(NULL) == 0);
  for (size_t size = 1; size <= 300000; size += size / 3 + 1) {
    for (unsigned i = 0; i < kNeighbours; i++) {
      blocks[i] = malloc(size);
      REQUIRE(blocks[i] != NULL && malloc_usable_size(blocks[i]) >= size);
      mark(blocks[i], malloc_usable_size(blocks[i]), i);
    }
    for (unsigned i = 0; i < kNeighbours; i++) free_marked(blocks[i], malloc_usable_size(blocks[i]), i);
  }
}

CASE(errno_free) {
  for (size_t size = 1; size <= 64 * MIB; size *= 2) {
    for (int rounds = 0; rounds < 40; rounds++) {
      void* several[4];
      for (size_t i = 0; i < COUNT_OF(several); i++) several[i] = take(size + i);
      for (size_t i = 0; i < COUNT_OF(several); i++) {
        errno = 4242;
        free(several[i]);
        REQUIRE(errno == 4242);
      }
    }
  }
  errno = 4242;
  free(NULL);
  REQUIRE(errno == 4242);
}

static int all_zero(const unsigned char* bytes, size_t size) {
  return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

/* The dirty blocks are freed all together, so that what calloc gets next was once part of a whole free piece. */
CASE(calloc_zero) {
  enum { kBatch = 24 };
  void* blocks[kBatch];
  for (size_t size = 1; size <= 6 * MIB; size += size / 6 + 1) {
    for (size_t i = 0; i < kBatch; i++) {
      blocks[i] = take(size);
      memset(blocks[i], 0xA5, size);
    }
    for (size_t i = 0; i < kBatch; i++) free(blocks[i]);
    for (size_t i = 0; i < kBatch; i++) {
      REQUIRE((blocks[i] = calloc(i % 2 ? size : 1, i % 2 ? 1 : size)) != NULL);
      REQUIRE(all_zero((const unsigned char*)blocks[i], size));
    }
    for (size_t i = 0; i < kBatch; i++) free(blocks[i]);
  }
}

/* Memory that went back to the system, or from one class to another, is as dirty or as clean as calloc says. */
CASE(calloc_zero_recycled) {
  enum { kBlocks = 4000 };
  static void* blocks[kBlocks];
  uint64_t seed = 88172645463325252u;
  for (int round = 0; round < 12; round++) {
    for (size_t i = 0; i < kBlocks; i++) {
      size_t size = 1 + random_next(&seed) % (round % 2 ? 9000 : 500);
      REQUIRE((blocks[i] = calloc(1, size)) != NULL);
      REQUIRE(all_zero((const unsigned char*)blocks[i], size));
      memset(blocks[i], 0x5A, malloc_usable_size(blocks[i]));
    }
    for (size_t i = 0; i < kBlocks; i++) free(blocks[i]);
    if (round % 3 == 2) malloc_trim(0);
  }
}

CASE_MAIN()

/* Sizes, alignment, usable size, errno, zeroing and the sized frees: what a single thread sees of them. */
#include <dlfcn.h>
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
  free_all(blocks, COUNT_OF(blocks));
}

CASE(align_sizes) {
  for (size_t size = 1; size <= 70000; size++) {
    char* block = (char*)malloc(size);
    REQUIRE(block != NULL && (uintptr_t)block % 16 == 0);
    REQUIRE(malloc_usable_size(block) >= size);
    block[0] = block[size - 1] = 1;
    free(block);
  }
}

CASE(align16_strict) {
  for (size_t size = 0; size <= 4096; size++) {
    void* blocks[] = {malloc(size), calloc(1, size), realloc(malloc(1), size + 1)};
    for (size_t i = 0; i < COUNT_OF(blocks); i++) REQUIRE(blocks[i] != NULL && (uintptr_t)blocks[i] % 16 == 0);
    free_all(blocks, COUNT_OF(blocks));
  }
}

CASE(usable_size) {
  enum { kNeighbours = 64 };
  void* blocks[kNeighbours];
  REQUIRE(malloc_usable_size(NULL) == 0);
  for (size_t size = 1; size <= 300000; size += size / 3 + 1) {
    for (unsigned i = 0; i < kNeighbours; i++) {
      REQUIRE(malloc_usable_size(blocks[i] = take(size)) >= size);
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
      errno = 4242;
      free_all(several, COUNT_OF(several));
      REQUIRE(errno == 4242);
    }
  }
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
    for (size_t i = 0; i < kBatch; i++) memset(blocks[i] = take(size), 0xA5, size);
    free_all(blocks, kBatch);
    for (size_t i = 0; i < kBatch; i++) {
      REQUIRE((blocks[i] = calloc(i % 2 ? size : 1, i % 2 ? 1 : size)) != NULL);
      REQUIRE(all_zero((const unsigned char*)blocks[i], size));
    }
    free_all(blocks, kBatch);
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
    free_all(blocks, kBlocks);
    if (round % 3 == 2) malloc_trim(0);
  }
}

/* Of C23, found at run time: not every C library has them. */
CASE(free_sized_right) {
  void (*sized)(void*, size_t) = (void (*)(void*, size_t))dlsym(RTLD_DEFAULT, "free_sized");
  void (*aligned)(void*, size_t, size_t) = (void (*)(void*, size_t, size_t))dlsym(RTLD_DEFAULT, "free_aligned_sized");
  REQUIRE(sized != NULL && aligned != NULL);
  for (size_t size = 0; size < 6 * MIB; size += size / 5 + 1) {
    sized(malloc(size), size);
    sized(calloc(1, size), size);
    sized(realloc(malloc(3), size + 1), size + 1);
    aligned(aligned_alloc(256, (size + 255) / 256 * 256), 256, (size + 255) / 256 * 256);
  }
  errno = 4242;
  sized(NULL, 0);
  aligned(NULL, 64, 0);
  REQUIRE(errno == 4242);
}

CASE_MAIN()

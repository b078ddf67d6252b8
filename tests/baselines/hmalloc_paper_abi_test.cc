// What the C ABI asks beyond the paper: alignment, sizes, errors, bad pointers.
#include <cerrno>

#include "hmalloc_paper_support.h"

using namespace hm;
using namespace hm::hmalloc_paper;
using namespace hm::hmalloc_paper::test;

TEST(PaperAbi, EveryBlockIsAlignedTo16) {
  for (size_t size = 0; size < 5000; ++size) {
    void *shared = hmp_shared_alloc(size), *local = hmp_local_alloc(size);
    EXPECT_EQ(address_of(shared) % 16, 0u) << size;
    EXPECT_EQ(address_of(local) % 16, 0u) << size;
    memset(shared, 1, size);
    memset(local, 1, size);
    hmp_shared_free(shared);
  }
  EXPECT_TRUE(is_valid());
}

TEST(PaperAbi, NothingIsAskedForAndEachTimeItIsAnotherBlock) {
  EXPECT_NE(hmp_shared_alloc(0), hmp_shared_alloc(0));
  EXPECT_NE(hmp_local_alloc(0), hmp_local_alloc(0));
  hmp_shared_free(nullptr);
  hmp_local_free(nullptr);
}

TEST(PaperAbi, AnAlignedBlockIsFreedAsAWhole) {
  void* aligned = allocate_aligned(256, 300);
  uint32_t c = shared_superblock_of(aligned).size_class;
  deallocate(aligned, "free");
  void* plain = local_heap()->shared[c].cache.blocks[0];
  EXPECT_EQ(address_of(plain) % 64, 16u) << "the cache has the block, not a place within";
  EXPECT_EQ(usable_size(plain, "test"), shared_superblock_of(plain).object_size - 16u);
}

TEST(PaperAbi, WhatCannotBeHadIsNullAndEnomem) {
  for (size_t size :
       {SIZE_MAX, SIZE_MAX - 15, SIZE_MAX - 71, size_t{PTRDIFF_MAX} + 1, size_t{PTRDIFF_MAX}, size_t{PTRDIFF_MAX} / 2}) {
    for (auto* allocate : {hmp_shared_alloc, hmp_local_alloc}) {
      errno = 0;
      EXPECT_EQ(allocate(size), nullptr) << size;
      EXPECT_EQ(errno, ENOMEM);
    }
  }
}

TEST(PaperAbi, FreeKeepsErrno) {
  for (size_t size : {10, 40'000, 4'000'000}) {
    void *shared = hmp_shared_alloc(size), *local = hmp_local_alloc(size);
    errno = 4242;
    hmp_shared_free(shared);
    hmp_local_free(local);
    EXPECT_EQ(errno, 4242) << size;
  }
}

TEST(PaperMisuse, IsToldByTheNameThatWasCalled) {
  int on_stack[16];
  EXPECT_EXIT(hmp_shared_free(on_stack), aborted, "^hmalloc_paper: hmp_shared_free.*not a block of hmalloc_paper\n$");
  EXPECT_EXIT(hmp_local_free(on_stack), aborted, "^hmalloc_paper: hmp_local_free");
}

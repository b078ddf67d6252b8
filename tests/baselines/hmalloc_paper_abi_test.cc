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

TEST(PaperAbi, LiveBlocksDoNotOverlap) {
  struct Block {
    unsigned char* start;
    size_t usable;
  };
  std::vector<Block> blocks;
  for (size_t alignment : {16, 32, 64, 128, 4096})
    for (size_t size = 1; size < 9000; size = size * 2 + 7)
      for (int i = 0; i < 4; ++i) {
        void* block = alignment == 16 ? allocate(size) : allocate_aligned(alignment, size);
        EXPECT_EQ(address_of(block) % alignment, 0u);
        size_t usable = usable_size(block, "test");
        EXPECT_GE(usable, size) << alignment;
        memset(block, static_cast<int>(blocks.size()), usable);
        blocks.push_back({static_cast<unsigned char*>(block), usable});
      }
  EXPECT_TRUE(is_valid()) << "the flags are intact";
  for (size_t n = 0; n < blocks.size(); ++n)
    for (size_t i = 0; i < blocks[n].usable; ++i)
      ASSERT_EQ(blocks[n].start[i], static_cast<unsigned char>(n)) << n;
  for (Block& block : blocks) deallocate(block.start, "free");
  EXPECT_TRUE(is_valid());
}

TEST(PaperAbi, AnAlignedBlockIsFreedAsAWhole) {
  void* aligned = allocate_aligned(256, 300);
  uint32_t c = shared_superblock_of(aligned).size_class;
  deallocate(aligned, "free");
  void* plain = local_heap()->shared[c].cache.blocks[0];
  EXPECT_EQ(address_of(plain) % 64, 16u) << "the cache has the block, not a place within";
  EXPECT_EQ(usable_size(plain, "test"), shared_superblock_of(plain).object_size - 16u);
}

TEST(PaperAbi, AlignmentsUpToHugeOnes) {
  for (size_t alignment = 32; alignment <= 64 * kMiB; alignment *= 2) {
    void* block = allocate_aligned(alignment, 100);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(address_of(block) % alignment, 0u);
    memset(block, 1, 100);
    deallocate(block, "free");
  }
  EXPECT_EQ(large_blocks.allocated(), 0u);
}

TEST(PaperAbi, WhatCannotBeHadIsNullAndEnomem) {
  for (size_t size : {SIZE_MAX, SIZE_MAX - 15, SIZE_MAX - 71, size_t{PTRDIFF_MAX} + 1, size_t{PTRDIFF_MAX},
                      size_t{PTRDIFF_MAX} / 2}) {
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

TEST(PaperMisuse, PointersFromElsewhere) {
  int on_stack[16];
  static int global[16];
  char* block = static_cast<char*>(hmp_shared_alloc(100));
  for (void* wild : {static_cast<void*>(on_stack), static_cast<void*>(global), reinterpret_cast<void*>(16),
                     reinterpret_cast<void*>(uintptr_t{0xdead} << 48)}) {
    EXPECT_EXIT(hmp_shared_free(wild), aborted, "^hmalloc_paper: hmp_shared_free.*not a block of hmalloc_paper\n$");
    EXPECT_EXIT(hmp_local_free(wild), aborted, "^hmalloc_paper: hmp_local_free");
  }
  EXPECT_EXIT(hmp_shared_free(block + 8), aborted, "points into a block, not to its start\n$");
  auto* header = reinterpret_cast<char*>(&shared_superblock_of(block));
  EXPECT_EXIT(hmp_shared_free(header + 16), aborted, "points into a block, not to its start\n$");
  EXPECT_EXIT(hmp_shared_free(header + 1024 * kKiB), aborted, "not a block of hmalloc_paper\n$")
      << "a superblock that nobody has yet";
}

TEST(PaperMisuse, ASecondFreeIsSeenWhenTheFlagIsReset) {
  std::vector<void*> blocks = allocate_many(101, 64);
  for (void* block : blocks) hmp_shared_free(block);
  EXPECT_EXIT(hmp_shared_free(blocks[100]), aborted, "not a block, or freed already\n$");
}

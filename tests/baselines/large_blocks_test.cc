#include "baselines/common/large_blocks.h"

#include <cerrno>
#include <random>
#include <thread>
#include <vector>

#include "large_blocks_support.h"

using namespace hm;
using namespace hm::test;

TEST(LargeBlocks, AreRunsOfPagesUpToOneMegabyteAndMappingsAbove) {
  size_t page = os::page_size();
  for (size_t size : {size_t{1}, page, page + 1, 40 * kKiB, kMiB - 1, kMiB}) {
    char* block = get(size);
    EXPECT_EQ(kind_of(block), ChunkKind::kRuns) << size;
    EXPECT_EQ(usable(block), align_up(size, page));
    EXPECT_EQ(address_of(block) % page, 0u);
    EXPECT_TRUE(LargeBlocks::holds(block));
    memset(block, 1, usable(block));
  }
  for (size_t size : {kMiB + 1, 5 * kMiB}) {
    char* block = get(size);
    EXPECT_EQ(kind_of(block), ChunkKind::kHuge) << size;
    EXPECT_GE(usable(block), size);
    EXPECT_LT(usable(block), size + page);
    EXPECT_EQ(address_of(block) % kLine, 0u);
    memset(block, 1, usable(block));
  }
  EXPECT_TRUE(large.is_valid());
}

TEST(LargeBlocks, TheAccountIsExact) {
  size_t page = os::page_size();
  char* run = get(3 * page - 5);
  EXPECT_EQ(large.allocated(), 3 * page);
  EXPECT_EQ(large.mapped(), kChunk);
  char* huge = get(4 * kMiB);
  EXPECT_EQ(large.allocated(), 3 * page + 4 * kMiB + page);
  EXPECT_EQ(large.mapped(), kChunk + 4 * kMiB + page);
  huge = static_cast<char*>(large.resize(huge, 6 * kMiB));
  EXPECT_EQ(large.mapped(), kChunk + 6 * kMiB + page);
  large.free(huge, "free");
  large.free(run, "free");
  EXPECT_EQ(large.allocated(), 0u);
  EXPECT_EQ(large.mapped(), kChunk);
  EXPECT_TRUE(large.is_valid());
}

TEST(LargeBlocks, AFreedBlockReadsAsZeroWhenItComesAgain) {
  for (size_t size : {40 * kKiB, kMiB, 3 * kMiB}) {
    char* block = get(size);
    memset(block, 1, size);
    large.free(block, "free");
    char* again = get(size);
    EXPECT_TRUE(large.comes_zeroed(again));
    EXPECT_TRUE(is_zero(again, usable(again)));
    large.free(again, "free");
  }
}

TEST(LargeBlocks, FreedNeighboursAreOneRun) {
  char* blocks[4];  // of the same 2 MB
  for (char*& block : blocks) block = get(400 * kKiB);
  EXPECT_EQ(blocks[1], blocks[0] + 400 * kKiB);
  large.free(blocks[1], "free");
  large.free(blocks[2], "free");
  EXPECT_EQ(get(800 * kKiB), blocks[1]);
  EXPECT_EQ(large.mapped(), kChunk);
  get(800 * kKiB);
  get(kMiB);
  EXPECT_EQ(large.mapped(), 2 * kChunk);
  large.free(blocks[0], "free");
  large.free(blocks[1], "free");
  EXPECT_EQ(get(kMiB), blocks[0]) << "a full chunk is searched again once something in it was freed";
  EXPECT_TRUE(large.is_valid());
}

TEST(LargeBlocks, EveryAlignmentWithEverySize) {
  for (size_t alignment = 16; alignment <= 64 * kMiB; alignment *= 2)
    for (size_t size : {size_t{1}, size_t{5000}, size_t{100000}, kMiB, kMiB + 1, 3 * kMiB}) {
      char* block = get(size, alignment);
      ASSERT_EQ(address_of(block) % alignment, 0u) << alignment << " " << size;
      ASSERT_GE(usable(block), size);
      mark_ends(block, usable(block));
      char* neighbour = get(size, alignment);
      ASSERT_EQ(address_of(neighbour) % alignment, 0u) << "also where the first place is taken";
      ASSERT_TRUE(block + usable(block) <= neighbour || neighbour + usable(neighbour) <= block);
      ASSERT_TRUE(large.is_valid());
      large.free(neighbour, "free");
      large.free(block, "free");
      ASSERT_EQ(large.allocated(), 0u);
    }
  for (size_t chunks = large.mapped(); chunks > 0; chunks -= kChunk) ASSERT_GE(chunks, kChunk) << "only runs are left";
}

TEST(LargeBlocks, ImpossibleSizesAreRefused) {
  errno = 4242;
  for (size_t size : {SIZE_MAX, SIZE_MAX - 4095, SIZE_MAX / 2, size_t{PTRDIFF_MAX}, size_t{1} << 62, size_t{1} << 48})
    for (size_t alignment : {size_t{16}, kMiB, 8 * kMiB}) EXPECT_EQ(large.allocate(size, alignment), nullptr);
  EXPECT_EQ(large.allocate(1, size_t{1} << 63), nullptr);
  EXPECT_EQ(large.allocate(1, size_t{1} << 50), nullptr);
  char* block = get(2 * kMiB);
  EXPECT_EQ(large.resize(block, SIZE_MAX), nullptr);
  EXPECT_EQ(large.resize(block, size_t{1} << 50), nullptr);
  large.free(block, "free");
  EXPECT_EQ(errno, 4242);
  EXPECT_EQ(large.mapped(), 0u);
}

TEST(LargeBlocksKeeping, FreedOnesStay) {
  for (size_t size : {40 * kKiB, 3 * kMiB}) {
    char* block = get(size, kGranule, keeping);
    memset(block, 1, size);
    size_t mapped = keeping.mapped();
    uint64_t calls = os::calls();
    keeping.free(block, "free");
    EXPECT_EQ(keeping.mapped(), mapped);
    EXPECT_EQ(keeping.allocated(), 0u);
    EXPECT_TRUE(keeping.is_valid());
    EXPECT_EQ(get(size - 1000, kGranule, keeping), block);
    EXPECT_EQ(os::calls(), calls);
    EXPECT_FALSE(keeping.comes_zeroed(block));
    EXPECT_EQ(block[100], 1);
    keeping.free(block, "free");
  }
}

TEST(LargeBlocks, ExaminesItself) {
  char* block = get(40 * kKiB);
  ASSERT_TRUE(large.is_valid());
  // The flags of the chunk's pages lie behind a link, a number, and the lengths of its runs.
  char* flags = reinterpret_cast<char*>(align_down(address_of(block), kChunk)) + 16 + 512 * 2;
  flags[400] = 1;
  EXPECT_FALSE(large.is_valid()) << "a used page without a run";
  flags[400] = 0;
  EXPECT_TRUE(large.is_valid());
  flags[address_of(block) % kChunk / os::page_size() + 1] = 0;
  EXPECT_FALSE(large.is_valid()) << "a run with a free page";
}

TEST(LargeBlocksDeathTest, WhatIsNoBlockEndsTheProgram) {
  int local = 0;
  char* run = get(40 * kKiB);
  char* huge = get(3 * kMiB);
  void* bad[] = {run + 16,
                 run + 4096,
                 reinterpret_cast<void*>(align_down(address_of(run), kChunk)),
                 huge + 16,
                 huge - kLine,
                 huge + kChunk,
                 &local,
                 reinterpret_cast<void*>(0x4141414141414140)};
  for (void* block : bad) {
    EXPECT_DEATH(large.free(block, "free"), "free\\(0x[0-9a-f]+\\): not a block, or freed already");
    EXPECT_DEATH(large.usable_size(block, "malloc_usable_size"), "malloc_usable_size.*not a block");
    EXPECT_EQ(large.resize(block, 8 * kMiB), nullptr);
  }
}

TEST(LargeBlocksDeathTest, ADoubleFreeEndsTheProgram) {
  for (LargeBlocks* blocks : {&large, &keeping})
    for (size_t size : {40 * kKiB, 3 * kMiB}) {
      char* block = get(size, kGranule, *blocks);
      blocks->free(block, "free");
      EXPECT_DEATH(blocks->free(block, "free"), "not a block, or freed already");
    }
}

TEST(LargeBlocksDeathTest, OfTwoThreadsThatFreeABlockOneFindsOut) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (size_t size : {40 * kKiB, 3 * kMiB})
    EXPECT_DEATH(
        {
          char* block = get(size);
          memset(block, 1, size);
          std::thread other([=] { large.free(block, "free"); });
          large.free(block, "free");
          other.join();
        },
        "not a block, or freed already");
}

TEST(LargeBlocks, ThreadsShareThem) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      std::mt19937 random(t);
      LargeBlocks& blocks = t % 2 == 0 ? large : keeping;
      for (int i = 0; i < 200; ++i) {
        size_t size = 1 + random() % (i % 10 == 0 ? 4 * kMiB : 300 * kKiB);
        char* block = get(size, kGranule, blocks);
        ASSERT_TRUE(!blocks.comes_zeroed(block) || block[size / 2] == 0);
        memset(block, 'a', size);
        if (void* moved = blocks.resize(block, size + kMiB)) block = static_cast<char*>(moved);
        ASSERT_EQ(block[size - 1], 'a');
        blocks.free(block, "free");
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (LargeBlocks* blocks : {&large, &keeping}) {
    EXPECT_TRUE(blocks->is_valid());
    EXPECT_EQ(blocks->allocated(), 0u);
  }
}

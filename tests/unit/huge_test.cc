#include "large/huge.h"

#include "base/address_map.h"
#include "base/os_pages.h"
#include "support.h"

using namespace hm;
using namespace hm::test;

TEST(Huge, ABlockHasAnExtentToItself) {
  HugeGauges before = huge_gauges();
  void* block = hm_malloc(5 * kMiB);
  EXPECT_EQ(kind_of(block), ChunkKind::kHuge);
  EXPECT_GE(hm_usable_size(block), 5 * kMiB);
  test::fill(block, hm_usable_size(block), 1);
  Extent* extent = huge_extent(block);
  ASSERT_NE(extent, nullptr);
  EXPECT_TRUE(huge_is_live(*extent));
  EXPECT_EQ(huge_size(*extent), 5 * kMiB);
  EXPECT_EQ(huge_extent(static_cast<char*>(block) + 16), nullptr);
  EXPECT_EQ(huge_gauges().blocks, before.blocks + 1);
  EXPECT_EQ(huge_gauges().active, before.active + 5 * kMiB);
  hm_free(block);
  EXPECT_EQ(huge_gauges().active, before.active);
}

TEST(Huge, EveryBlockStartsAtTheStartOfItsExtent) {
  for (size_t alignment : {size_t{16}, 2 * kSlice, kMiB, kChunk, 8 * kMiB, 64 * kMiB}) {
    void* block = hm_aligned_alloc(alignment, 2 * kMiB);
    EXPECT_EQ(address_of(block) % std::max(alignment, kChunk), 0u);
    EXPECT_EQ(kind_of(block), ChunkKind::kHuge);
    EXPECT_EQ(huge_gauges().mapped, 2 * kMiB) << "and nothing of ours is in it";
    EXPECT_EQ(huge_extent(static_cast<char*>(block) + kSlice), nullptr);
    hm_free(block);
    hm_collect();
    EXPECT_EQ(kind_of(block), ChunkKind::kGone);
  }
}

TEST(Huge, AnAlignedBlockGrowsLikeAnyOther) {
  char* block = static_cast<char*>(hm_aligned_alloc(8 * kMiB, 3 * kMiB));
  test::fill(block, 3 * kMiB, 5);
  char* grown = static_cast<char*>(hm_realloc(block, 9 * kMiB));
  EXPECT_TRUE(test::matches(grown, 3 * kMiB, 5));
  EXPECT_EQ(huge_gauges().mapped, 10 * kMiB);
  hm_free(grown);
}

TEST(Huge, WhatLiesBehindASmallerBlockGoesBackInTime) {
  char* block = keep_written(4 * kMiB);
  char* smaller = static_cast<char*>(hm_malloc(5 * kMiB / 2));
  ASSERT_EQ(smaller, block);
  memset(smaller, 2, 5 * kMiB / 2);
  size_t behind = 4 * kMiB - 5 * kMiB / 2;
  EXPECT_EQ(huge_gauges().kept, behind);
  EXPECT_EQ(resident(smaller + 5 * kMiB / 2, behind), behind);
  hm_collect();
  EXPECT_EQ(huge_gauges().kept, 0u);
  EXPECT_EQ(resident(smaller + 5 * kMiB / 2, behind), 0u);
  for (size_t i = 0; i < 5 * kMiB / 2; ++i) ASSERT_EQ(smaller[i], 2);
  hm_free(smaller);
}

TEST(Huge, ABlockThatGrewOverItsSlackKeepsItsPages) {
  char* block = keep_written(4 * kMiB);
  char* smaller = static_cast<char*>(hm_malloc(5 * kMiB / 2));
  char* grown = static_cast<char*>(hm_realloc(smaller, 3 * kMiB));
  ASSERT_EQ(grown, block);
  memset(grown, 3, 3 * kMiB);
  hm_collect();
  for (size_t i = 0; i < 3 * kMiB; ++i) ASSERT_EQ(grown[i], 3);
  hm_free(grown);
}

TEST(Huge, ABlockThatShrinksGivesBackWhatIsBehindIt) {
  char* block = static_cast<char*>(hm_malloc(9 * kMiB));
  memset(block, 1, 9 * kMiB);
  ASSERT_EQ(hm_realloc(block, 3 * kMiB), block);
  EXPECT_EQ(huge_gauges().mapped, 4 * kMiB);
  EXPECT_EQ(resident(block + 3 * kMiB, kMiB / 2), 0u);
  hm_free(block);
}

TEST(Huge, ABlockGrowsIntoTheKeptExtentBehindIt) {
  char* block = keep_written(16 * kMiB);
  uint64_t calls = os::calls();
  char* smaller = static_cast<char*>(hm_malloc(4 * kMiB));
  test::fill(smaller, 4 * kMiB, 3);
  char* grown = static_cast<char*>(hm_realloc(smaller, 11 * kMiB));
  EXPECT_EQ(grown, block);
  EXPECT_TRUE(test::matches(grown, 4 * kMiB, 3));
  EXPECT_EQ(huge_gauges().kept, 4 * kMiB + kMiB) << "the rest, and slack";
  EXPECT_EQ(kind_of(block + 4 * kMiB), ChunkKind::kGone);
  EXPECT_EQ(os::calls(), calls);
  hm_free(grown);
  EXPECT_EQ(huge_gauges().kept, 16 * kMiB);
}

TEST(Huge, SlackIsCountedWithinTheExtent) {
  char* block = allocate_recurring(9 * kMiB);
  memset(block, 1, 9 * kMiB);
  block = static_cast<char*>(hm_realloc(block, 3 * kMiB));
  EXPECT_EQ(huge_gauges().kept, kMiB);
  hm_free(block);
}

TEST(Huge, BlocksGrowWithTheirContents) {
  size_t size = 2 * kMiB;
  void* block = hm_malloc(size);
  test::fill(block, size, 77);
  for (int i = 0; i < 6; ++i) {
    void* blocker = hm_malloc(2 * kMiB);  // often behind the block, so that it must move
    size_t bigger = size + size / 2;
    block = hm_realloc(block, bigger);
    ASSERT_NE(block, nullptr);
    ASSERT_TRUE(test::matches(block, size, 77));
    ASSERT_NE(huge_extent(block), nullptr);
    ASSERT_GE(hm_usable_size(block), bigger);
    size = bigger;
    test::fill(block, size, 77);
    hm_free(blocker);
  }
  block = hm_realloc(block, 2 * kMiB);
  EXPECT_TRUE(test::matches(block, 2 * kMiB, 77));
  EXPECT_EQ(hm_usable_size(block), 2 * kMiB);
  block = hm_realloc(block, 1000);
  EXPECT_TRUE(test::matches(block, 1000, 77));
  hm_free(block);
  hm_collect();
  EXPECT_EQ(huge_gauges().blocks, 0u);
  EXPECT_EQ(huge_gauges().mapped, 0u);
}

#include "large/huge.h"

#include <atomic>
#include <thread>

#include "base/os_pages.h"
#include "support.h"

using namespace hm;
using namespace hm::test;

namespace {

struct Huge : NothingIsLost {
  Huge() { options.decay_ms = 60'000; }
  void TearDown() override {
    NothingIsLost::TearDown();
    EXPECT_TRUE(huge_is_valid());
    EXPECT_EQ(huge_gauges().blocks + huge_gauges().active + huge_gauges().mapped, 0u);
  }
};

char* allocate(size_t size) { return static_cast<char*>(hm_malloc(size)); }
char* resize(char* block, size_t size) { return static_cast<char*>(hm_realloc(block, size)); }

}  // namespace

TEST_F(Huge, ABlockHasAnExtentToItself) {
  for (size_t alignment : {size_t{16}, 2 * kSlice, kMiB, kChunk, 8 * kMiB, 64 * kMiB}) {
    char* block = static_cast<char*>(hm_aligned_alloc(alignment, 2 * kMiB));
    EXPECT_EQ(address_of(block) % std::max(alignment, kChunk), 0u);
    EXPECT_EQ(kind_of(block), ChunkKind::kHuge);
    EXPECT_EQ(huge_gauges().mapped, 2 * kMiB) << "and nothing of ours is in it";
    Extent* extent = huge_extent(block);
    ASSERT_NE(extent, nullptr);
    EXPECT_TRUE(huge_is_live(*extent));
    EXPECT_EQ(huge_size(*extent), 2 * kMiB);
    EXPECT_EQ(hm_usable_size(block), 2 * kMiB);
    for (size_t inside : {size_t{16}, kSlice}) EXPECT_EQ(huge_extent(block + inside), nullptr);
    EXPECT_EQ(huge_gauges().blocks, 1u);
    EXPECT_EQ(huge_gauges().active, 2 * kMiB);
    hm_free(block);
    EXPECT_EQ(huge_gauges().active, 0u);
    hm_collect();
    EXPECT_EQ(kind_of(block), ChunkKind::kGone);
  }
}

TEST_F(Huge, AnAlignedBlockGrowsLikeAnyOther) {
  char* block = static_cast<char*>(hm_aligned_alloc(8 * kMiB, 3 * kMiB));
  fill(block, 3 * kMiB, 5);
  block = resize(block, 9 * kMiB);
  EXPECT_TRUE(matches(block, 3 * kMiB, 5));
  EXPECT_EQ(huge_gauges().mapped, 10 * kMiB);
  hm_free(block);
}

TEST_F(Huge, WhatLiesBehindASmallerBlockGoesBackInTime) {
  constexpr size_t kSize = 5 * kMiB / 2, kBehind = 4 * kMiB - kSize;
  char *block = keep_written(4 * kMiB), *smaller = allocate(kSize);
  ASSERT_EQ(smaller, block);
  fill(smaller, kSize, 2);
  EXPECT_EQ(huge_gauges().kept, kBehind);
  EXPECT_EQ(resident(smaller + kSize, kBehind), kBehind);
  hm_collect();
  EXPECT_EQ(huge_gauges().kept, 0u);
  EXPECT_EQ(resident(smaller + kSize, kBehind), 0u);
  EXPECT_TRUE(matches(smaller, kSize, 2));
  hm_free(smaller);
}

TEST_F(Huge, ABlockThatGrewOverItsSlackKeepsItsPages) {
  char *block = keep_written(4 * kMiB), *smaller = allocate(5 * kMiB / 2);
  ASSERT_EQ(resize(smaller, 3 * kMiB), block);
  fill(block, 3 * kMiB, 3);
  hm_collect();
  EXPECT_TRUE(matches(block, 3 * kMiB, 3));
  hm_free(block);
}

TEST_F(Huge, ABlockThatShrinksGivesBackWhatIsBehindIt) {
  char* block = allocate(9 * kMiB);
  memset(block, 1, 9 * kMiB);
  ASSERT_EQ(resize(block, 3 * kMiB), block);
  EXPECT_EQ(huge_gauges().mapped, 4 * kMiB);
  EXPECT_EQ(resident(block + 3 * kMiB, kMiB / 2), 0u);
  hm_free(block);
}

TEST_F(Huge, ABlockGrowsIntoTheKeptExtentBehindIt) {
  char* block = keep_written(16 * kMiB);
  uint64_t calls = os::calls();
  char* smaller = allocate(4 * kMiB);
  fill(smaller, 4 * kMiB, 3);
  EXPECT_EQ(resize(smaller, 11 * kMiB), block);
  EXPECT_TRUE(matches(block, 4 * kMiB, 3));
  EXPECT_EQ(huge_gauges().kept, 4 * kMiB + kMiB) << "the rest, and slack";
  EXPECT_EQ(kind_of(block + 4 * kMiB), ChunkKind::kGone);
  EXPECT_EQ(os::calls(), calls);
  hm_free(block);
  EXPECT_EQ(huge_gauges().kept, 16 * kMiB);
}

// A fuzzer's: ThreadSanitizer reports it if somebody reads the size of an extent whose holder is resizing it.
TEST_F(Huge, ABlockThatIsBeingResizedIsNotLookedAt) {
  std::atomic<bool> over{false};
  std::thread looker([&] {
    while (!over) unmap_behind_huge_blocks();
  });
  char* block = allocate(2 * kMiB);
  for (size_t i = 0; i < 200; ++i) block = resize(block, (i % 2 == 0 ? 9 : 2) * kMiB);
  over = true;
  looker.join();
  hm_free(block);
}

TEST_F(Huge, SlackIsCountedWithinTheExtent) {
  char* block = allocate_recurring(9 * kMiB);
  memset(block, 1, 9 * kMiB);
  block = resize(block, 3 * kMiB);
  EXPECT_EQ(huge_gauges().kept, kMiB);
  hm_free(block);
}

// Memory that goes back to the system at once, by the free that makes it free.
#include <thread>

#include "base/os_pages.h"
#include "core/superblock_pool.h"
#include "pages/footprint.h"
#include "pages/options.h"
#include "pages/slice_pool.h"
#include "support.h"

using namespace hm;

namespace {

constexpr size_t kBytes = 32 * kMiB;
constexpr size_t kLittle = 2 * kMiB;  // what caches, current superblocks and the retained slices may hold

std::vector<void*> take(size_t size, size_t bytes = kBytes) {
  std::vector<void*> blocks(bytes / size);
  for (void*& block : blocks) test::fill(block = hm_malloc(size), size, 1);
  return blocks;
}
void free_all(std::vector<void*>& blocks) {
  for (void* block : blocks) hm_free(block);
}
void shuffle(std::vector<void*>& blocks) {
  uint64_t state = 1;
  for (size_t i = blocks.size() - 1; i > 0; --i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    std::swap(blocks[i], blocks[(state >> 33) % (i + 1)]);
  }
}
size_t slices_in_use() { return slice_pool.used() * kSlice; }

class GiveBack : public testing::TestWithParam<size_t> {};

}  // namespace

TEST_P(GiveBack, InTheOrderOfAllocation) {
  auto blocks = take(GetParam());
  free_all(blocks);
  EXPECT_LT(slices_in_use(), kLittle);
  EXPECT_GT(footprint.purged(), kBytes - kLittle);
}

TEST_P(GiveBack, InAnyOrder) {
  auto blocks = take(GetParam());
  shuffle(blocks);
  free_all(blocks);
  EXPECT_LT(slices_in_use(), kLittle);
  EXPECT_GT(footprint.purged(), kBytes - kLittle);
}

TEST_P(GiveBack, ByAThreadThatOnlyFrees) {
  auto blocks = take(GetParam());
  shuffle(blocks);
  std::thread([&] { free_all(blocks); }).join();
  EXPECT_LT(slices_in_use(), kLittle);
}

TEST_P(GiveBack, OfAThreadThatHasEnded) {
  std::vector<void*> blocks;
  std::thread([&] { blocks = take(GetParam()); }).join();
  shuffle(blocks);
  free_all(blocks);
  EXPECT_LT(slices_in_use(), kLittle);
}

INSTANTIATE_TEST_SUITE_P(Sizes, GiveBack, testing::Values(32, 200, 1000, 4096, 10000, 32768, 100000, 1000000),
                         testing::PrintToStringParamName());

TEST(GiveBackNot, WhatIsRetained) {
  options.retain_bytes = 2 * kBytes;
  auto blocks = take(1000);
  free_all(blocks);
  EXPECT_EQ(footprint.purged(), 0u);
}

// The second time it is missed, and from then on it stays.
TEST(GiveBackNot, WhatTheProgramAsksForAgain) {
  for (int round = 0; round < 2; ++round) {
    auto blocks = take(1000);
    free_all(blocks);
  }
  uint64_t before = footprint.purged();
  for (int round = 0; round < 5; ++round) {
    auto blocks = take(1000);
    free_all(blocks);
  }
  EXPECT_LT(footprint.purged() - before, kBytes / 2) << "of five times as much";
}

TEST(GiveBackNot, ASuperblockThatStillHasABlock) {
  auto blocks = take(512, 4 * kMiB);
  std::vector<void*> kept;
  for (void*& block : blocks)
    if (address_of(block) % kSlice < 512) kept.push_back(std::exchange(block, nullptr));
  size_t before = slice_pool.used();
  free_all(blocks);
  EXPECT_GE(slice_pool.used() + 1, before) << "all but the last";
  for (void* block : kept) EXPECT_EQ(*static_cast<char*>(block), *static_cast<char*>(kept[0]));
  free_all(kept);
  EXPECT_LT(slices_in_use(), kLittle);
}

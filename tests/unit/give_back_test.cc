// Memory that goes back to the system at once, by the free that makes it free.
#include <algorithm>

#include "base/clock.h"
#include "pages/footprint.h"
#include "pages/options.h"
#include "support.h"
#include "threads/registry.h"
#include "upkeep/reclaim.h"

using namespace hm;
using namespace hm::test;

namespace {

constexpr size_t kBytes = 32 * kMiB;
constexpr size_t kLittle = 2 * kMiB;  // what caches, current superblocks and the retained slices may hold

std::vector<void*> take(size_t size, size_t bytes = kBytes) {
  auto blocks = allocate_many(bytes / size, size);
  for (void* block : blocks) fill(block, size, 1);
  return blocks;
}
void free_in_any_order(std::vector<void*> blocks) {
  std::shuffle(blocks.begin(), blocks.end(), std::mt19937(kSeed));
  free_all(blocks);
}

struct GiveBack : testing::TestWithParam<size_t> {
  void TearDown() override {
    EXPECT_LT(slice_pool.used() * kSlice, kLittle);
    EXPECT_GT(footprint.purged(), kBytes - kLittle);
  }
};

}  // namespace

TEST_P(GiveBack, InTheOrderOfAllocation) { free_all(take(GetParam())); }

TEST_P(GiveBack, InAnyOrder) { free_in_any_order(take(GetParam())); }

TEST_P(GiveBack, ByAThreadThatOnlyFrees) {
  auto blocks = take(GetParam());
  on_thread([&] { free_in_any_order(blocks); });
}

TEST_P(GiveBack, OfAThreadThatHasEnded) {
  std::vector<void*> blocks;
  on_thread([&] { blocks = take(GetParam()); });
  free_in_any_order(blocks);
}

INSTANTIATE_TEST_SUITE_P(Sizes, GiveBack, testing::Values(32, 200, 1000, 4096, 10000, 32768, 100000, 1000000),
                         testing::PrintToStringParamName());

// Who frees it finds the purge under way, and leaves the work to it.
TEST(GiveBackDuringAPurge, WhatOthersFreeMeanwhile) {
  options.decay_ms = 60'000;
  std::vector<void*> blocks = take(100'000);
  hm_free(hm_malloc(100'000));
  slice_pool.purge(SlicePool::Purge::kDue);  // from now on what was freed is due
  bool freed = false;
  during_next_advice = [&] {
    on_thread([&] { free_all(blocks); });
    freed = slice_pool.gauges().dirty_slices * kSlice > kBytes / 2;
  };
  slice_pool.purge(SlicePool::Purge::kDue);
  EXPECT_TRUE(freed) << "and not given back by its thread";
  EXPECT_LT(slice_pool.gauges().dirty_slices * kSlice, kLittle);
}

// Chunks whose slices a purge has in hand count as all others do.
TEST(GiveBackDuringAPurge, ThePoolIsInOrder) {
  options.decay_ms = 60'000;
  options.retain_bytes = 2 * kBytes;  // so that there is a surplus
  free_all(take(100'000));
  ASSERT_GT(slice_pool.gauges().dirty_slices * kSlice, kBytes / 2);
  bool valid = false;
  during_next_advice = [&] { valid = slice_pool.is_valid(); };
  slice_pool.purge(SlicePool::Purge::kAll);
  EXPECT_TRUE(valid);
}

// Without a decay time there is a tick in each millisecond, not at each look.
TEST(Looks, DoNotActTwiceInAMillisecond) {
  std::vector<void*> blocks = take(1000);  // the more a program has, the more a heap may keep
  hm_free(hm_malloc(100'000));
  ThreadHeap& heap = my_thread_heap();
  size_t kept = 0;
  do {
    options.decay_ms = 60'000;
    hm_free(hm_malloc(100'000));
    options.decay_ms = 0;
    kept = heap.large.bytes();
    heap.tick_ms = os::now_ms();
    for (int look = 0; look < 3; ++look) upkeep(heap);
  } while (os::now_ms() != heap.tick_ms);
  ASSERT_GT(kept, 0u);
  EXPECT_EQ(heap.large.bytes(), kept) << "the second of two ticks would have released it";
  free_all(blocks);
}

TEST(GiveBackNot, WhatIsRetained) {
  options.decay_ms = 60'000;  // however slow the machine is, it does not pause
  options.retain_bytes = 2 * kBytes;
  free_all(take(1000));
  EXPECT_EQ(footprint.purged(), 0u);
}

// The second time it is missed, and from then on it stays.
TEST(GiveBackNot, WhatTheProgramAsksForAgain) {
  options.decay_ms = 60'000;  // however busy the machine is
  for (int round = 0; round < 2; ++round) free_all(take(1000));
  uint64_t before = footprint.purged();
  for (int round = 0; round < 5; ++round) free_all(take(1000));
  EXPECT_LT(footprint.purged() - before, kBytes / 2) << "of five times as much";
}

TEST(GiveBackNot, WhatItAsksForAgainIfNothingElseIsRetained) {
  options.decay_ms = 60'000;
  options.retain_bytes = 0;
  for (int round = 0; round < 2; ++round) free_all(take(1000));
  uint64_t before = footprint.purged();
  for (int round = 0; round < 5; ++round) free_all(take(1000));
  EXPECT_LT(footprint.purged() - before, kBytes / 2) << "of five times as much";
}

TEST(GiveBackNot, ASuperblockThatStillHasABlock) {
  auto blocks = take(512, 4 * kMiB), kept = take_one_of_each_slice(blocks, 512);
  size_t before = slice_pool.used();
  free_all(blocks);
  EXPECT_GE(slice_pool.used() + 1, before) << "all but the last";
  for (void* block : kept) EXPECT_TRUE(matches(block, 512, 1));
  free_all(kept);
  EXPECT_LT(slice_pool.used() * kSlice, kLittle);
}

// A thread that has no heap keeps a pace of its own: after a burst it uses one block again and again, and the rest goes back.
struct GiveBackWithoutHeap : testing::TestWithParam<size_t> {};

TEST_P(GiveBackWithoutHeap, WhatABurstHasLeft) {
  options.decay_ms = 60'000;  // however busy the machine is
  size_t size = GetParam(), kept = 0;
  on_thread([&] {
    for (int round = 0; round < 12; ++round) free_all(take(size, 64 * kMiB));
    EXPECT_GT(footprint.resident(), kBytes);
    options.decay_ms = 200;
    uint64_t until = os::now_ms() + 20'000;
    do {
      usleep(500);
      hm_free(hm_malloc(size));
      kept = footprint.resident();
    } while (kept > 8 * kMiB && os::now_ms() < until);
    EXPECT_FALSE(have_heap());
  });
  EXPECT_LE(kept, 8 * kMiB);
}
INSTANTIATE_TEST_SUITE_P(Sizes, GiveBackWithoutHeap, testing::Values(512 * kKiB, 2 * kMiB),
                         testing::PrintToStringParamName());

// Heaps of ended threads are drained while it does, and not only in rounds.
TEST(GiveBackNow, WarmHeapsWhileAThreadWithoutOneOnlyFrees) {
  options.decay_ms = 60'000;
  std::vector<void*> blocks;
  on_thread([&] { blocks = take(4096); });
  EXPECT_TRUE(registry.has_warm());
  on_thread([&] { free_all(blocks); });
  EXPECT_FALSE(registry.has_warm());
}

// Of large blocks that come and go nobody concludes that the process shrinks.
TEST(GiveBackNot, WarmHeapsForLargeBlocksOfAThreadWithoutOne) {
  options.decay_ms = 60'000;
  on_thread([] { hm_free(hm_malloc(100)); });
  on_thread([] {
    std::mt19937 random(kSeed);
    std::vector<void*> held;
    for (int i = 0; i < 2000; ++i) {
      if (held.empty() || random() % 2 == 0) held.push_back(hm_malloc(600'000));
      else hm_free(held.back()), held.pop_back();
    }
    free_all(held);
  });
  EXPECT_TRUE(registry.has_warm());
}

// The background thread sleeps after rounds that say false.
TEST(BackgroundRound, SaysWhetherAnythingWaits) {
  options.decay_ms = 60'000;
  EXPECT_FALSE(background_round());
  for (int round = 0; round < 4; ++round) hm_free(hm_malloc(4 * kMiB));
  EXPECT_TRUE(background_round()) << "a kept block";
  hm_collect();
  EXPECT_FALSE(background_round());
  for (int round = 0; round < 2; ++round) free_all(take(100'000));
  EXPECT_TRUE(background_round()) << "slices";
  hm_collect();
  EXPECT_FALSE(background_round());
  on_thread([] { hm_free(hm_malloc(100)); });
  EXPECT_TRUE(background_round()) << "a heap that is still to be drained";
}

TEST(GiveBackNot, ForARequestThatNoProcessCanHold) {
  free_all(allocate_many(100, 64));
  hm_stats before, after;
  hm_stats_get(&before);
  for (int bit = 48; bit < 62; ++bit) EXPECT_EQ(hm_malloc(size_t{1} << bit), nullptr);
  hm_stats_get(&after);
  ASSERT_GT(before.cached, 0u);
  EXPECT_EQ(after.cached, before.cached);
}

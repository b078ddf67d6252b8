// When a heap looks at its caches, which of them it calls idle, and how their sizes follow their use.
#include <chrono>

#include "base/clock.h"
#include "small_heaps.h"

using namespace hm;
using namespace hm::test;

// Ticks come with the slow operations of one class; another that hits its cache all the time has none, and is not idle.
TEST_F(SmallHeaps, ACacheThatMovesIsNotIdle) {
  options.decay_ms = 60'000;
  ClassIndex resting = class_of(128);
  use_batches(100, k64);
  use_batches(100, resting);
  std::vector<void*> held;
  for (int i = 0; i < 50; ++i) {
    held.push_back(hm_malloc(64));
    make_most_of_a_tick();
    ASSERT_GT(capacity(k64), 0u) << i;
  }
  EXPECT_EQ(capacity(resting), 0u);
  EXPECT_EQ(entries(resting), 0u);
  free_all(held);
}

// However many large blocks come and go between two uses of a class.
TEST_F(SmallHeaps, LargeBlocksDoNotMakeACacheIdle) {
  options.decay_ms = 60'000;  // however slow the machine is
  use_batches(100, k512);
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < 1000; ++k) hm_free(hm_malloc(10 * kSlice));
    EXPECT_GT(capacity(k512), 0u);
  }
  EXPECT_GT(entries(k512), 0u);
}

// Nor do two that make a small process larger and smaller all the time, and are too long to be kept.
TEST_F(SmallHeaps, LargeBlocksThatSwingDoNotMakeACacheIdle) {
  options.decay_ms = 60'000;
  size_t ticks = 0;
  my_heap()->ticks_in_round = 0;
  for (int i = 0; i < 80; ++i) {
    free_all(allocate_many(2, kLargeMax));
    ticks += std::exchange(my_heap()->ticks_in_round, 0);
  }
  EXPECT_LE(ticks, 320u / 16);
}

// A program that lets a quarter of its memory go, all in large blocks, has caches that it no longer needs.
TEST_F(SmallHeaps, LargeBlocksThatGoMakeItsCachesIdle) {
  options.decay_ms = 60'000;
  use_batches(100, k512);
  free_all(allocate_many(40, 30 * kSlice));
  EXPECT_EQ(capacity(k512), 0u);
  EXPECT_EQ(entries(k512), 0u);
}

// Few calls in a long time are a tick too.
TEST_F(SmallHeaps, ACacheIsIdleAfterSomeTime) {
  options.decay_ms = 80;
  use_batches(100, k512);
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    for (int k = 0; k < 8; ++k) hm_free(hm_malloc(2 * kSlice));
  }
  EXPECT_EQ(capacity(k512), 0u);
  EXPECT_EQ(entries(k512), 0u);
}

// Where every moment is late.
TEST_F(SmallHeaps, WithoutADecayTimeThereIsOneTickForEachTimeOfTheClock) {
  options.decay_ms = 0;
  std::set<uint64_t> times{os::now_ms()};
  size_t ticks = 0;
  for (int i = 0; i < 500; ++i) {
    my_heap()->slices_at_tick = 0;
    hm_free(hm_malloc(kLargeMax));
    ticks += my_heap()->slices_at_tick != 0;
    times.insert(os::now_ms());
  }
  EXPECT_LE(ticks, times.size());
}

// The slots of caches that have not grown lie together; one that grows moves, with all that is in it.
TEST_F(SmallHeaps, ACacheThatProvesTooSmallGrowsAndMoves) {
  size_t first = capacity(k64);
  void** before = cache_of(k64).bottom();
  use_batches(1000, k64, 8);
  EXPECT_GT(capacity(k64), first);
  EXPECT_GE(entries(k64), 1000u) << "batches of 1000 are served from the cache in the end";
  EXPECT_NE(cache_of(k64).bottom(), before);
  EXPECT_EQ(my_heap()->cached_blocks(index_of(k64)), entries(k64));
  EXPECT_LE(address_of(cache_of(k64).bottom()) - address_of(before), 1u << 20);
}

// Batches a little larger than the capacity: each costs one refill, and they do not fit for ever.
TEST_F(SmallHeaps, ACacheThatIsTightGrows) {
  size_t first = capacity(k64);
  use_batches(first + first / 8, k64, 40);
  EXPECT_GT(capacity(k64), first);
  EXPECT_LE(capacity(k64), 2 * first);
  uint64_t settled = my_heap()->refills.get();
  use_batches(first + first / 8, k64, 40);
  EXPECT_EQ(my_heap()->refills.get(), settled);
}

// A cache that is too small now and then costs nothing: a server of many hours keeps small caches.
TEST_F(SmallHeaps, ACacheThatIsSeldomTightStaysAsItIs) {
  options.decay_ms = 4;
  size_t first = capacity(k64);
  for (int round = 0; round < 40; ++round) {
    use_batches(first + first / 8, k64);
    EXPECT_LE(capacity(k64), first);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    make_most_of_a_tick();  // which begins another round
  }
}

// Blocks that lie in a large cache at every tick of a round are not needed there.
TEST_F(SmallHeaps, WhatNobodyNeedsLeavesTheCache) {
  options.decay_ms = 60'000;  // however busy the machine is, nothing is idle yet
  use_batches(1000, k64, 8);
  size_t grown = capacity(k64);
  EXPECT_GE(entries(k64), 1000u);
  options.decay_ms = 40;
  std::vector<void*> held;
  for (uint64_t start = os::now_ms(); capacity(k64) > grown / 2 && os::now_ms() - start < 60'000;) {
    held.push_back(hm_malloc(64));  // in use, a little
    if (held.size() == 100) free_all(held), held.clear();
    make_most_of_a_tick();
    if (capacity(k64) == 0) use_batches(1000, k64, 8);  // a busy machine has paused, and the class was idle
  }
  EXPECT_LE(capacity(k64), grown / 2);
  EXPECT_GT(capacity(k64), 0u);
  EXPECT_LE(entries(k64), capacity(k64));
  free_all(held);
}

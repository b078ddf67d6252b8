#include "core/small_heap.h"

#include <barrier>
#include <cstdlib>

#include "base/os_pages.h"
#include "pages/cache_budget.h"
#include "small_heaps.h"

extern "C" [[gnu::weak]] char __libc_single_threaded;  // NOLINT(bugprone-reserved-identifier)

using namespace hm;
using namespace hm::test;

TEST_F(SmallHeaps, LiesBetweenGuards) {
  uintptr_t heap = address_of(&my_thread_heap()), end = heap;
  EXPECT_TRUE(is_guard(heap - os::page_size()));
  while (!accessible_bytes(end, end + os::page_size()).empty()) end += os::page_size();
  EXPECT_TRUE(is_guard(end));
}

TEST_F(SmallHeaps, ABlockThatIsTwiceInACacheIsFoundWhenItLeaves) {
  if (kChecked) GTEST_SKIP() << "the checked library finds the second free";
  void *block = hm_malloc(64), *other = hm_malloc(64), *held = hm_malloc(64);  // its superblock stays
  EXPECT_EXIT((hm_free(block), hm_free(other), hm_free(block), hm_collect()), testing::KilledBySignal(SIGABRT),
              "^hmalloc: free\\(0x[0-9a-f]+\\): double free, found when the block left the thread's cache\n  byte 0 of");
  free_all({block, other, held});
}

TEST_F(SmallHeaps, AThreadThatOnlyFreesGetsNone) {
  void *block = hm_malloc(64), *shared = hm_shared_alloc(64);
  on_thread([=] {
    hm_free(block);
    hm_shared_free_sized(shared, 64);
    EXPECT_FALSE(have_heap());
  });
}

TEST_F(SmallHeaps, ServesWhatWasFreedLast) {
  for (ClassIndex c : all_classes()) {
    auto blocks = allocate_many(2, size_of(c));
    while (entries(c) > 0) blocks.push_back(hm_malloc(size_of(c)));
    hm_free(blocks[0]);
    hm_free(blocks[1]);
    EXPECT_EQ(hm_malloc(size_of(c)), blocks[1]);
    EXPECT_EQ(hm_malloc(size_of(c)), blocks[0]);
    free_all(blocks);
  }
}

TEST_F(SmallHeaps, AFreeNeverLosesABlock) {
  for (ClassIndex c : all_classes()) {
    for (size_t n : {1, 2, 3, 40}) use_batches(n, c);
    EXPECT_EQ(allocated_after_collect(), 0u) << size_of(c);
  }
}

TEST_F(SmallHeaps, CachesAreBoundedInEntriesAndBytes) {
  for (int round = 0; round < 6; ++round)
    for (ClassIndex c : all_classes()) {
      use_batches(3000 * 64 / (size_of(c) + 63), c);
      EXPECT_LE(capacity(c), options.cache_blocks);
      EXPECT_LE(entries(c), std::max(capacity(c), 2 * kGroup));
    }
  size_t one_of_each = 0;
  for (ClassIndex c : all_classes()) one_of_each += size_of(c);
  EXPECT_LE(my_heap()->capacity_bytes, options.cache_bytes + one_of_each);
  EXPECT_LE(cached_bytes(), options.cache_bytes + kClasses * kGroup * kKiB);
}

namespace {

// Of blocks that are allocated in a row, those that lie next to the one before.
size_t neighbours(size_t size) {
  auto blocks = allocate_many(4000, size);
  size_t found = 0;
  for (size_t i = blocks.size() / 2; i < blocks.size(); ++i)
    found += address_of(blocks[i]) - address_of(blocks[i - 1]) == size;
  free_all(blocks);
  return found;
}

}  // namespace

TEST_F(SmallHeaps, OneThreadAloneBuildsByAddress) {
  if (&__libc_single_threaded == nullptr || __libc_single_threaded == 0) GTEST_SKIP() << "not known here";
  EXPECT_GT(neighbours(48), 1900u);
  on_thread([] { EXPECT_LT(neighbours(48), 400u) << "a line each, for those that threads may come to write"; });
}

// A cache may always hold one block, so that a pair of calls is served from it.
TEST_F(SmallHeaps, WithManyHeapsEachKeepsLess) {
  auto use_all = [] {
    for (ClassIndex c : all_classes()) use_batches(3000 * 64 / (size_of(c) + 63), c);
  };
  size_t heaps = footprint.heaps(), least = 0;
  for (ClassIndex c : all_classes()) least += size_of(c);
  size_t share = kSharedCacheBytes / 64 + least;
  my_heap()->release_all();
  footprint.set_heaps(64);
  use_all();
  EXPECT_LE(my_heap()->capacity_bytes, share);
  for (ClassIndex c : all_classes()) {
    use_batches(1, c);
    EXPECT_GE(capacity(c), 1u) << size_of(c);
  }
  footprint.set_heaps(heaps);
  use_all();
  EXPECT_GT(my_heap()->capacity_bytes, share);
  footprint.set_heaps(64);
  my_heap()->on_tick();
  EXPECT_LE(my_heap()->capacity_bytes, share) << "caches that were larger before there were many";
  EXPECT_LE(cached_bytes(), share + kClasses * kGroup * kLine);
  footprint.set_heaps(heaps);
}

// A few threads that work among many that sleep do not go to the pool for every other block.
TEST_F(SmallHeaps, AmongAThousandHeapsEachMayKeepALittle) {
  size_t heaps = footprint.heaps();
  my_heap()->release_all();
  footprint.set_heaps(1000);
  use_batches(40, k64);
  EXPECT_GE(capacity(k64), kLeastCacheBytes / kClasses / 64);
  EXPECT_LE(my_heap()->capacity_bytes, kLeastCacheBytes);
  footprint.set_heaps(heaps);
}

TEST_F(SmallHeaps, ManyThreadsTogetherKeepLittle) {
  constexpr unsigned kThreads = 64;
  std::barrier all_have_heaps(kThreads), all_have_freed(kThreads), looked(kThreads);
  hm_stats stats;
  on_threads(kThreads, [&](unsigned thread) {
    use_batches(1, k64);
    all_have_heaps.arrive_and_wait();
    for (ClassIndex c : all_classes()) use_batches(40, c);
    all_have_freed.arrive_and_wait();
    if (thread == 0) hm_stats_get(&stats);
    looked.arrive_and_wait();
  });
  size_t least = 0;
  for (ClassIndex c : all_classes()) least += size_of(c);
  EXPECT_LE(stats.cached, kSharedCacheBytes + kThreads * (least + 3 * kGroup * kLine));
}

TEST_F(SmallHeaps, BlocksOfOtherHeapsAreBoundedTheSame) {
  auto blocks = allocate_many(4000, 64);
  on_thread([&] {
    use_batches(1, k64);
    for (void* block : blocks) {
      hm_free(block);
      ASSERT_LE(entries(k64), std::max(capacity(k64), 2 * kGroup));
    }
    EXPECT_GT(my_heap()->flushes.get(), 0u);
  });
}

TEST_F(SmallHeaps, CapacityBytesIsTheSumOfTheCapacities) {
  size_t sum = 0;
  for (ClassIndex c : all_classes()) use_batches(500, c);
  for (ClassIndex c : all_classes()) sum += capacity(c) * size_of(c);
  EXPECT_EQ(my_heap()->capacity_bytes, sum);
}

// Threads that use a handful of a class share a superblock; who needs a second handful keeps one.
TEST_F(SmallHeaps, FirstHandfulsShareASuperblock) {
  ClassIndex c = class_of(48);
  std::set<Superblock*> superblocks;
  std::vector<void*> held(4);
  for (void*& block : held)
    on_thread([&] {
      block = hm_malloc(48);
      EXPECT_EQ(state_of(c).current, nullptr);
      auto more = allocate_many(2 * kGroup, 48);  // a handful may be almost two groups
      EXPECT_NE(state_of(c).current, nullptr);
      my_thread_heap().drain();
      free_all(more);
      superblocks.insert(&find_block(block).sb);
    });
  EXPECT_EQ(superblocks.size(), 1u);
  free_all(held);
}

TEST_F(SmallHeaps, OwnBlocksBeyondTheCapacityAreFreeAtOnce) {
  auto blocks = allocate_many(4000, 1024);
  free_all(blocks);
  size_t taken = 0;
  for (void* block : blocks) taken += !find_block(block).state.is_free();
  EXPECT_EQ(taken, entries(class_of(1024)));
}

// Who allocates and frees nothing stops looking for room among what is full; who finds some looks as often as ever.
TEST_F(SmallHeaps, WhatALongRunBroughtBeyondTheCapacityGoesWithItsEnd) {
  ClassIndex c = class_of(1024);
  auto blocks = allocate_many(CacheTuner::kMostWanted + 1, size_of(c));           // a run, too short for the cache to grow
  while (entries(c) <= capacity(c) + 1) blocks.push_back(hm_malloc(size_of(c)));  // until a refill brings more
  hm_free(blocks.back());
  blocks.pop_back();
  EXPECT_LE(entries(c), capacity(c));
  free_all(blocks);
}

TEST_F(SmallHeaps, LooksInVainBecomeFewer) {
  auto blocks = allocate_many(64 * 200, 512);
  EXPECT_EQ(state_of(k512).search.probes(), 1);
  auto kept = take_one_of_each_slice(blocks, 512);  // or these would go back as they become free
  free_all(blocks);
  blocks = allocate_many(blocks.size(), 512);
  EXPECT_GT(state_of(k512).search.probes(), 1);
  free_all(blocks);
  free_all(kept);
}

TEST(PoolSearches, AreFewerAfterEachInVainAndAsManyAsEverAfterASuccess) {
  PoolSearch search;
  auto made = [&](int times) {
    int due = 0;
    for (int i = 0; i < times; ++i)
      if (search.is_due()) ++due, search.on_failure();
    return due;
  };
  EXPECT_EQ(search.probes(), SuperblockPool::kMaxProbes);
  EXPECT_EQ(made(4), 4);
  EXPECT_EQ(search.probes(), 1u);
  EXPECT_EQ(made(1000), 500) << "every second one is left out";
  while (!search.is_due()) continue;
  search.on_failure();
  EXPECT_FALSE(search.is_due());
  search.on_frees();
  EXPECT_TRUE(search.is_due());
  search.on_success();
  EXPECT_EQ(search.probes(), SuperblockPool::kMaxProbes);
}

// Whatever way a block becomes FREE, the pool gets to know: it searches itself no sooner than there is something to be found.
TEST_F(SmallHeaps, WhatBecomesFreeIsCounted) {
  constexpr size_t kBlocks = 20000, kSize = 512, kMissing = 64 * kKiB;
  auto counted_of = [](auto free_them) {
    auto blocks = allocate_many(kBlocks, kSize);
    uint64_t before = superblock_pool.made_free();
    free_them(blocks);
    return superblock_pool.made_free() - before;
  };
  auto by_itself = counted_of([](auto& blocks) { free_all(blocks); });
  auto by_another = counted_of([](auto& blocks) {
    on_thread([&] {
      free_all(allocate_many(1, kSize));  // so it has a heap
      free_all(blocks);
    });
  });
  auto without_a_heap = counted_of([](auto& blocks) { on_thread([&] { free_all(blocks); }); });
  for (uint64_t counted : {by_itself, by_another, without_a_heap})
    EXPECT_GE(counted + options.cache_blocks * kSize + kMissing, kBlocks * kSize);
  for (uint64_t counted : {by_itself, by_another}) EXPECT_LE(counted, kBlocks * kSize + kMissing);
  void* block = hm_malloc(kSize);
  uint64_t before_one = superblock_pool.made_free();
  on_thread([=] { hm_free(block); });
  EXPECT_GE(superblock_pool.made_free(), before_one + kSize) << "a thread without a heap may end after one";
  use_batches(1, class_of(kSize));
  uint64_t before = superblock_pool.made_free(), cached = cached_bytes();
  hm_collect();
  EXPECT_GE(superblock_pool.made_free(), before + cached);
}

// A class whose blocks all go to other threads keeps several superblocks: nearly free ones of the pool before new ones.
TEST_F(SmallHeaps, AStreamTakesWhatIsNearlyFree) {
  auto pooled = [](size_t taken) -> Superblock& {
    Superblock& sb = fresh_superblock(k512);
    for (size_t i = 0; i < taken; ++i) sb.states[i].mark_taken();
    sb.set_owner(&my_heap()->shelf);  // its shard
    superblock_pool.push(sb);
    return sb;
  };
  auto held = allocate_many(1, 512);  // the class is in use
  constexpr size_t kHalf = blocks_of(k512) / 2, kFew = blocks_of(k512) / 16;
  Superblock &half = pooled(kHalf), &nearly = pooled(kFew);
  state_of(k512).tuner.on_refill(8192);
  std::vector<Superblock*> order{&find_block(held[0]).sb};
  while (order.size() < 3) {
    held.push_back(hm_malloc(512));
    Superblock& sb = find_block(held.back()).sb;
    if (&sb != order.back()) order.push_back(&sb);
  }
  EXPECT_EQ(order[1], &nearly);
  EXPECT_NE(order[2], &half) << "it would soon be used up";
  free_all(held);
  for (size_t i = 0; i < kHalf; ++i) half.states[i].give_back();
  for (size_t i = 0; i < kFew; ++i) nearly.states[i].give_back();
  my_thread_heap().drain();
}

// The slots of a class that a thread has not asked for are no page of memory.
TEST_F(SmallHeaps, ACacheOpensWithTheFirstRefill) {
  ClassIndex c = class_of(100);
  void* foreign = hm_malloc(100);
  on_thread([=] {
    use_batches(1, class_of(16));  // a heap
    EXPECT_EQ(capacity(c), 0u);
    EXPECT_EQ(my_heap()->cached_blocks(index_of(c)), 0u);
    hm_free(foreign);
    EXPECT_EQ(entries(c), 0u) << "straight to FREE";
    EXPECT_EQ(cache_of(c).bottom(), empty_heap.caches[index_of(c)].bottom());
    use_batches(1, c);
    EXPECT_GT(capacity(c), 0u);
    EXPECT_EQ(my_heap()->cached_blocks(index_of(c)), entries(c));
    EXPECT_GT(entries(c), 0u);
  });
}

TEST_F(SmallHeaps, DrainLeavesNothing) {
  for (ClassIndex c : all_classes()) use_batches(200, c);
  my_thread_heap().drain();
  EXPECT_EQ(cached_bytes(), 0u);
  for (ClassIndex c : all_classes()) {
    EXPECT_EQ(state_of(c).current, nullptr);
    EXPECT_EQ(my_heap()->full(c).count(), 0u);
  }
  EXPECT_TRUE(my_heap()->is_valid());
  use_batches(300, class_of(100));  // and goes on after it
}

TEST_F(SmallHeaps, IsValidSeesDamage) {
  use_batches(10, k64);
  EXPECT_TRUE(my_heap()->is_valid());
  BlockState& state = find_block(cache_of(k64).top_block()).state;
  state.give_back();  // a cached block that somebody else believes free
  EXPECT_FALSE(my_heap()->is_valid());
  kChecked ? state.mark_cached() : state.mark_taken();
}

// The rules of the arenas and of the caches, on one thread or one after the other.
#include <sched.h>

#include "ar_malloc_support.h"

using namespace ar_malloc_test;

TEST(Arenas, TakeTurnsInBeingBoundToThreads) {
  start_with("3");
  EXPECT_EQ(arenas_in_use(), 3u);
  for (size_t i = 0; i < 8; ++i)
    on_thread([i] {
      for (size_t size : {1, 700, 5000}) EXPECT_TRUE(is_in(get(size), i % 3)) << i;
    });
}

TEST(Arenas, AreOneBeforeTheOptionsAreRead) {
  EXPECT_EQ(arenas_in_use(), 1u);
  void* early = get(1);
  on_thread([] { EXPECT_TRUE(is_in(get(1), 0)); });
  start_with("4");
  on_thread([] { EXPECT_TRUE(is_in(get(1), 2)); });
  give(early);
}

TEST(Arenas, AreAsManyAsProcessorsByDefault) {
  cpu_set_t processors;
  ASSERT_EQ(sched_getaffinity(0, sizeof processors, &processors), 0);
  start_with("0");
  EXPECT_EQ(arenas_in_use(), static_cast<size_t>(CPU_COUNT(&processors)));
}

TEST(Arenas, AreNoMoreThanThereIsRoomFor) {
  start_with("1000000", "100000000000");
  EXPECT_EQ(arenas_in_use(), kMaxArenas);
  start_with("2");
  EXPECT_EQ(arenas_in_use(), kMaxArenas) << "the first call counts";
  get(100);
  EXPECT_EQ(cache.most, kMaxLists);
}

TEST(Arenas, AnEmptySlabServesAnyClassOfItsArena) {
  start_with("2");
  auto of_arena = [](size_t arena, size_t count, size_t size) {
    on_thread([=] { give_all(get_many(count, size)); });
    return arenas[arena].counters().slabs;
  };
  size_t slabs = of_arena(0, 40000, 16);
  EXPECT_GE(slabs, 9u);
  EXPECT_GE(of_arena(1, 40000, 16), 9u) << "but none of another";
  EXPECT_EQ(of_arena(0, 500, 900), slabs);
  EXPECT_TRUE(ar_malloc::is_valid());
}

TEST(Arenas, AClassKeepsItsLastSlab) {
  give(get(2000));
  uint64_t cuts = counted().cuts;
  for (int i = 0; i < 100; ++i) give(get(2000));
  EXPECT_EQ(counted().cuts, cuts);
  give_all(get_many(100, 2000));  // four slabs
  EXPECT_EQ(counted().cuts, cuts + 3);
  give_all(get_many(60, 4000));  // four slabs, and three are there
  EXPECT_EQ(counted().slabs, 5u);
}

TEST(Cache, AnEmptyListTakesABatch) {
  char* last = get(100);
  EXPECT_EQ(counted().locks, 1u);
  EXPECT_EQ(counted().out, kBatch);
  EXPECT_EQ(list_of(100).count(), kBatch - 1);
  for (uint32_t i = 1; i < kBatch; ++i) {
    char* block = get(100);
    EXPECT_EQ(block, last + 112) << "lowest addresses first";
    last = block;
  }
  EXPECT_EQ(counted().locks, 1u) << "without a lock";
  get(100);
  EXPECT_EQ(counted().locks, 2u);
  EXPECT_EQ(counted().out, 2 * kBatch);
}

TEST(Cache, AFullListGivesItsOlderHalfBack) {
  std::vector<void*> blocks = get_many(3 * kBatch, 100);
  uint64_t locks = counted().locks;
  for (uint32_t i = 0; i < kMaxList; ++i) give(blocks[i]);
  EXPECT_EQ(list_of(100).count(), kMaxList);
  EXPECT_EQ(counted().locks, locks) << "without a lock";
  give(blocks[kMaxList]);
  EXPECT_EQ(counted().locks, locks + 1);
  EXPECT_EQ(counted().back, kMaxList / 2);
  EXPECT_EQ(list_of(100).count(), kBatch + 1);
  for (uint32_t i = 0; i <= kMaxList; ++i) EXPECT_EQ(slab_of(blocks[i]).has_free(blocks[i]), i < kMaxList / 2);
  EXPECT_EQ(get(100), blocks[kMaxList]) << "the most recent first";
  EXPECT_TRUE(ar_malloc::is_valid());
}

TEST(Cache, EndsAtTheArticlesLimit) {
  give(get(kMaxCached));
  EXPECT_EQ(counted().back, 0u);
  EXPECT_EQ(list_of(kMaxCached).count(), kBatch);
  uint64_t out = counted().out;
  void* block = get(kMaxCached + 1);
  EXPECT_EQ(counted().out, out + 1) << "alone, from the arena";
  give(block);
  EXPECT_EQ(counted().back, 1u) << "and back to it at once";
}

TEST(Cache, HoldsAsManyAsTheOptionSays) {
  start_with("1", "7");
  std::vector<void*> blocks = get_many(30, 100);
  EXPECT_EQ(counted().out, 30u) << "ten batches of three";
  EXPECT_EQ(counted().locks, 10u);
  for (size_t i = 0; i < 7; ++i) give(blocks[i]);
  EXPECT_EQ(counted().back, 0u);
  give(blocks[7]);
  EXPECT_EQ(counted().back, 4u);
}

TEST(Cache, MayBeTurnedOff) {
  start_with("3", "0");
  for (int i = 0; i < 10; ++i) give(get(100));
  EXPECT_EQ(counted().locks, 20u);
  EXPECT_EQ(ar_malloc::usage().cached, 0u);
  on_thread([] { EXPECT_TRUE(is_in(get(100), 1)) << "arenas there are still"; });
}

TEST(Cache, HoldsBlocksOfOtherArenasUntilTheThreadEnds) {
  start_with("2");
  std::vector<void*> blocks = get_many(kMaxList, 200);
  on_thread([&] {
    give(blocks[0]);
    EXPECT_EQ(get(200), blocks[0]);
    give_all(blocks);
    EXPECT_EQ(counted().back, 0u);
    give(get(300));  // of its own arena
  });
  Arena::Counters theirs = arenas[0].counters(), own = arenas[1].counters();
  EXPECT_EQ(theirs.back, kMaxList);
  EXPECT_EQ(theirs.foreign, kMaxList);
  EXPECT_EQ(own.back, kBatch);
  EXPECT_EQ(own.foreign, 0u);
  EXPECT_TRUE(ar_malloc::is_valid());
}

TEST(Cache, AFlushTakesEachArenasLockOnce) {
  start_with("3");
  std::vector<std::vector<void*>> of(3);
  for (auto& blocks : of) on_thread([&] { blocks = get_many(kMaxList, 64); });
  uint64_t locks = counted().locks;
  // 144 blocks: flushes at the 65th, the 97th and the 129th.
  for (uint32_t i = 0; i < kBatch + kBatch / 2; ++i)
    for (auto& blocks : of) give(blocks[i]);
  EXPECT_EQ(counted().locks, locks + 9);
  for (size_t i : {0, 1, 2}) EXPECT_EQ(arenas[i].counters().back, kBatch);
}

TEST(Account, CountsWhatTheProgramHasAndWhatIsCached) {
  std::vector<void*> blocks = get_many(100, 100);
  void* large = get(100 * kKiB);
  EXPECT_EQ(ar_malloc::usage().allocated, 100 * 112 + 100 * kKiB);
  EXPECT_EQ(ar_malloc::usage().cached, 28 * 112u) << "of four batches";
  EXPECT_EQ(ar_malloc::usage().mapped, kSlab + kChunk);
  give_all(blocks);
  give(large);
  EXPECT_EQ(ar_malloc::usage().allocated, 0u);
}

TEST(Account, TheCountersAreMembersOfAnObject) {
  start_with("3");
  give(get(10));
  EXPECT_EQ(counters(),
            ",\"arenas\":3,\"threads\":1,\"slabs\":1,\"slab_cuts\":1,\"arena_locks\":1,\"blocks_out\":32,"
            "\"blocks_back\":0,\"blocks_foreign\":0");
}

TEST(Validity, FindsWhatIsBrokenInACache) {
  char* block = get(100);
  list_of(200).push(reinterpret_cast<FreeBlock*>(block));
  EXPECT_FALSE(ar_malloc::is_valid()) << "a block of another class";
  list_of(200).pop();
  give(block);
  EXPECT_TRUE(ar_malloc::is_valid());
  slab_of(block).give_back(block);
  EXPECT_FALSE(ar_malloc::is_valid()) << "a block that is free in its slab too";
}

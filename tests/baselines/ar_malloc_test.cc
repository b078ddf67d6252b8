// The rules of the arenas and of the caches, on one thread or one after the other.
#include <sched.h>

#include "ar_malloc_support.h"

using namespace hm;
using namespace hm::ar_malloc;

TEST(Arenas, TakeTurnsInBeingBoundToThreads) {
  start_with("3");
  EXPECT_EQ(arenas_in_use(), 3u);
  EXPECT_TRUE(is_in(allocate(1), arenas[0]));
  EXPECT_TRUE(is_in(allocate(5000), arenas[0])) << "for good";
  for (size_t i = 1; i < 8; ++i)
    on_thread([i] {
      EXPECT_TRUE(is_in(allocate(1), arenas[i % 3])) << i;
      EXPECT_TRUE(is_in(allocate(700), arenas[i % 3])) << i;
    });
}

TEST(Arenas, AreOneBeforeTheOptionsAreRead) {
  EXPECT_EQ(arenas_in_use(), 1u);
  void* early = allocate(1);
  on_thread([] { EXPECT_TRUE(is_in(allocate(1), arenas[0])); });
  start_with("4");
  on_thread([] { EXPECT_TRUE(is_in(allocate(1), arenas[2])); });
  ar_malloc::free(early);
}

TEST(Arenas, AreAsManyAsProcessorsByDefault) {
  cpu_set_t processors;
  ASSERT_EQ(sched_getaffinity(0, sizeof processors, &processors), 0);
  start_with("0");
  EXPECT_EQ(arenas_in_use(), static_cast<size_t>(CPU_COUNT(&processors)));
}

TEST(Arenas, AreNoMoreThanThereIsRoomFor) {
  start_with("1000000");
  EXPECT_EQ(arenas_in_use(), kMaxArenas);
  setenv("AR_MALLOC_ARENAS", "2", 1);
  start();
  EXPECT_EQ(arenas_in_use(), kMaxArenas) << "the first call counts";
}

TEST(Arenas, ABadNumberIsNamed) {
  testing::internal::CaptureStderr();
  start_with("many");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "ar_malloc: AR_MALLOC_ARENAS=many is not understood; ignored\n");
  EXPECT_GE(arenas_in_use(), 1u);
}

TEST(Arenas, AnEmptySlabServesAnyClassOfItsArena) {
  on_thread([] { free_all(allocate_many(40000, 16)); });
  size_t slabs = counted().slabs;
  EXPECT_GE(slabs, 9u);
  on_thread([] { free_all(allocate_many(500, 900)); });
  EXPECT_EQ(counted().slabs, slabs);
  EXPECT_TRUE(is_valid());
}

TEST(Arenas, AnEmptySlabServesNoOtherArena) {
  start_with("2");
  free_all(allocate_many(40000, 16));
  size_t slabs = counted().slabs;
  on_thread([=] {
    free_all(allocate_many(40000, 16));
    EXPECT_GE(counted().slabs, 2 * slabs - 1);
  });
}

TEST(Arenas, AClassKeepsItsLastSlab) {
  ar_malloc::free(allocate(2000));
  uint64_t cuts = counted().cuts;
  for (int i = 0; i < 100; ++i) ar_malloc::free(allocate(2000));
  EXPECT_EQ(counted().cuts, cuts);
  free_all(allocate_many(100, 2000));  // four slabs
  EXPECT_EQ(counted().cuts, cuts + 3);
  free_all(allocate_many(60, 4000));  // four slabs, and three are there
  EXPECT_EQ(counted().slabs, 5u);
}

TEST(Cache, AnEmptyListTakesABatch) {
  void* first = allocate(100);
  EXPECT_EQ(counted().locks, 1u);
  EXPECT_EQ(counted().out, kBatch);
  EXPECT_EQ(list_of(100).count(), kBatch - 1);
  char* last = static_cast<char*>(first);
  for (uint32_t i = 1; i < kBatch; ++i) {
    char* block = static_cast<char*>(allocate(100));
    EXPECT_EQ(block, last + 112) << "lowest addresses first";
    last = block;
  }
  EXPECT_EQ(counted().locks, 1u) << "without a lock";
  allocate(100);
  EXPECT_EQ(counted().locks, 2u);
  EXPECT_EQ(counted().out, 2 * kBatch);
}

TEST(Cache, AFullListGivesItsOlderHalfBack) {
  std::vector<void*> blocks = allocate_many(3 * kBatch, 100);
  uint64_t locks = counted().locks;
  for (uint32_t i = 0; i < kMaxList; ++i) ar_malloc::free(blocks[i]);
  EXPECT_EQ(list_of(100).count(), kMaxList);
  EXPECT_EQ(counted().locks, locks) << "without a lock";
  ar_malloc::free(blocks[kMaxList]);
  EXPECT_EQ(counted().locks, locks + 1);
  EXPECT_EQ(counted().back, kMaxList / 2);
  EXPECT_EQ(list_of(100).count(), kBatch + 1);
  for (uint32_t i = 0; i <= kMaxList; ++i) EXPECT_EQ(slab_of(blocks[i]).has_free(blocks[i]), i < kMaxList / 2);
  EXPECT_EQ(allocate(100), blocks[kMaxList]) << "the most recent first";
  EXPECT_TRUE(is_valid());
}

TEST(Cache, EndsAtTheArticlesLimit) {
  ar_malloc::free(allocate(kMaxCached));
  EXPECT_EQ(counted().back, 0u);
  EXPECT_EQ(list_of(kMaxCached).count(), kBatch);
  uint64_t out = counted().out;
  void* block = allocate(kMaxCached + 1);
  EXPECT_EQ(counted().out, out + 1) << "alone, from the arena";
  ar_malloc::free(block);
  EXPECT_EQ(counted().back, 1u) << "and back to it at once";
  EXPECT_EQ(allocate(kMaxCached + 1), block);
}

TEST(Cache, HoldsAsManyAsTheOptionSays) {
  setenv("AR_MALLOC_CACHE", "7", 1);
  start_with("1");
  std::vector<void*> blocks = allocate_many(30, 100);
  EXPECT_EQ(counted().out, 30u) << "ten batches of three";
  EXPECT_EQ(counted().locks, 10u);
  for (int i = 0; i < 7; ++i) ar_malloc::free(blocks[static_cast<size_t>(i)]);
  EXPECT_EQ(counted().back, 0u);
  ar_malloc::free(blocks[7]);
  EXPECT_EQ(counted().back, 4u);
  EXPECT_TRUE(is_valid());
}

TEST(Cache, MayBeTurnedOff) {
  setenv("AR_MALLOC_CACHE", "0", 1);
  start_with("3");
  for (int i = 0; i < 10; ++i) ar_malloc::free(allocate(100));
  EXPECT_EQ(counted().locks, 20u);
  EXPECT_EQ(usage().cached, 0u);
  on_thread([] { EXPECT_TRUE(is_in(allocate(100), arenas[1])) << "arenas there are still"; });
}

TEST(Cache, HasABound) {
  setenv("AR_MALLOC_CACHE", "100000000000", 1);
  start_with("1");
  allocate(100);
  EXPECT_EQ(cache.most, kMaxLists);
}

TEST(Cache, HoldsBlocksOfOtherArenasUntilItIsFull) {
  start_with("2");
  std::vector<void*> blocks = allocate_many(kMaxList, 200);
  on_thread([&] {
    ar_malloc::free(blocks[0]);
    EXPECT_EQ(allocate(200), blocks[0]);
    free_all(blocks);
    EXPECT_EQ(counted().back, 0u);
    void* own = allocate(300);
    EXPECT_TRUE(is_in(own, arenas[1]));
    ar_malloc::free(own);
  });
  EXPECT_EQ(arenas[0].counters().back, kMaxList) << "at the thread's end";
  EXPECT_EQ(arenas[0].counters().foreign, kMaxList);
  EXPECT_EQ(arenas[1].counters().back, kBatch);
  EXPECT_EQ(arenas[1].counters().foreign, 0u);
  EXPECT_TRUE(is_valid());
}

TEST(Cache, AFlushTakesEachArenasLockOnce) {
  start_with("3");
  std::vector<std::vector<void*>> of(3);
  of[0] = allocate_many(kMaxList, 64);
  on_thread([&] { of[1] = allocate_many(kMaxList, 64); });
  on_thread([&] { of[2] = allocate_many(kMaxList, 64); });
  uint64_t locks = counted().locks;
  for (uint32_t i = 0; i < kBatch + kBatch / 2; ++i)
    for (auto& blocks : of) ar_malloc::free(blocks[i]);
  // 144 blocks: flushes at the 65th, the 97th and the 129th.
  EXPECT_EQ(counted().locks, locks + 9);
  EXPECT_EQ(counted().back, 3 * kBatch);
  for (Arena& arena : {std::ref(arenas[0]), std::ref(arenas[1]), std::ref(arenas[2])})
    EXPECT_EQ(arena.counters().back, kBatch);
}

// Runs, chunks and regions; what goes back to the system is in slice_pool_purge_test.cc.
#include "pages/slice_pool.h"

#include <barrier>

#include "base/os_pages.h"
#include "slices.h"

using namespace hm;
using namespace hm::test;

namespace {

struct SlicePools : testing::Test, Pool {};

}  // namespace

TEST_F(SlicePools, NothingWithoutMapping) {
  EXPECT_EQ(pool.allocate(1, false).first, nullptr);
  EXPECT_EQ(pool.chunks(), 0u);
}

TEST_F(SlicePools, RunsOfEveryLengthAreZeroedAndDisjoint) {
  std::vector<char*> runs;
  for (size_t n = 1; n <= SlicePool::kMaxRun; ++n) {
    SlicePool::Run run = take(n);
    EXPECT_TRUE(run.zeroed);
    EXPECT_EQ(address_of(base(run)) % kSlice, 0u);
    EXPECT_EQ(kind_of(base(run)), ChunkKind::kSlices);
    EXPECT_TRUE(is_filled(base(run), n, 0));
    fill_slices(base(run), n, static_cast<char>(n));
    runs.push_back(base(run));
  }
  for (size_t n = 1; n <= runs.size(); ++n) {
    ASSERT_TRUE(is_filled(runs[n - 1], n, static_cast<char>(n))) << n;
    pool.release(Slice::of(address_of(runs[n - 1])), n);
  }
  EXPECT_EQ(pool.gauges().free_slices, slices_of_chunks(pool.chunks()));
}

TEST_F(SlicePools, FreedSlicesAreTakenFirstAndNotCalledZero) {
  take(2);
  SlicePool::Run freed = take(1);
  pool.release(*freed.first, 1);
  SlicePool::Run again = take(1);
  EXPECT_EQ(again.first, freed.first);
  EXPECT_FALSE(again.zeroed);
}

TEST_F(SlicePools, ARunWithOneDirtySliceIsNotZeroed) {
  pool.release(*take(kFirstRun).first, kFirstRun);
  EXPECT_EQ(purge(), kFirstRun * kSlice);
  SlicePool::Run one = take(1);
  EXPECT_TRUE(one.zeroed);
  pool.release(*one.first, 1);
  EXPECT_FALSE(take(4).zeroed);
}

TEST_F(SlicePools, ExtendsInPlaceWhileThereIsRoom) {
  SlicePool::Run a = take(2);
  EXPECT_TRUE(pool.extend(*a.first, 2, 5));
  EXPECT_EQ(base(take(1)), base(a) + 5 * kSlice);
  EXPECT_FALSE(pool.extend(*a.first, 5, 6)) << "another lies there";
  SlicePool::Run rest = take(kFirstRun - 6);
  EXPECT_FALSE(pool.extend(*rest.first, kFirstRun - 6, kFirstRun - 5)) << "the chunk ends there";
  EXPECT_EQ(pool.chunks(), 1u);
}

TEST_F(SlicePools, ARunThatFillsAChunkSkipsTheFirstOfARegion) {
  EXPECT_EQ(take(SlicePool::kMaxRun).first->slice() % kSlicesInChunk, 0u);
  EXPECT_EQ(pool.chunks(), 2u);
}

TEST_F(SlicePools, ChunksOfARegionTakeOneMapping) {
  take(kFirstRun);
  uint64_t before = os::calls();
  while (pool.chunks() < kChunksInRegion) take(kSlicesInChunk);
  EXPECT_EQ(os::calls(), before);
}

TEST_F(SlicePools, AChunkWithoutUsedSlicesIsClosedButTheLast) {
  SlicePool::Run a = take(kFirstRun), b = take(kSlicesInChunk);
  EXPECT_EQ(pool.chunks(), 2u);
  memset(base(b), 1, kChunk);
  pool.release(*a.first, kFirstRun);
  pool.release(*b.first, kSlicesInChunk);
  EXPECT_EQ(purge(), slices_of_chunks(2) * kSlice);
  EXPECT_EQ(pool.chunks(), 1u);
  bool first_is_open = kind_of(base(a)) == ChunkKind::kSlices;
  EXPECT_EQ(kind_of(base(first_is_open ? b : a)), ChunkKind::kGone);
  EXPECT_EQ(pool.gauges().free_slices, first_is_open ? kFirstRun : kSlicesInChunk);
  EXPECT_EQ(pool.gauges().space, kRegion - kChunk);
}

TEST_F(SlicePools, AClosedChunkServesAgainAndIsZero) {
  take(1);
  SlicePool::Run run = take(kSlicesInChunk);
  memset(base(run), 1, kChunk);
  pool.release(*run.first, kSlicesInChunk);
  purge();
  EXPECT_EQ(kind_of(base(run)), ChunkKind::kGone);
  SlicePool::Run again = take(kSlicesInChunk);
  EXPECT_EQ(base(again), base(run));
  EXPECT_TRUE(again.zeroed);
  EXPECT_TRUE(is_zero(base(again), kChunk));
  EXPECT_EQ(kind_of(base(again)), ChunkKind::kSlices);
}

// Used as they are opened, with chunks that were never used between them, or each as a whole.
TEST_F(SlicePools, RegionsWithoutOpenChunksAreUnmapped) {
  for (size_t slices : {kFirstRun, kSlicesInChunk}) {
    std::vector<SlicePool::Run> runs;
    while (pool.chunks() <= 2 * kChunksInRegion) runs.push_back(take(slices));
    EXPECT_EQ(pool.gauges().space, 3 * kRegion - pool.chunks() * kChunk);
    for (SlicePool::Run& run : runs) pool.release(*run.first, slices);
    purge();
    EXPECT_EQ(pool.chunks(), 1u);
    EXPECT_EQ(pool.gauges().space, kRegion - kChunk);
  }
}

TEST_F(SlicePools, ARegionThatIsUnmappedGivesItsGuardsBack) {
  take(1);
  std::vector<SlicePool::Run> runs;
  while (pool.chunks() <= kChunksInRegion) runs.push_back(take(kFirstRun));
  void* page = os::map(1, os::page_size());
  auto guard = [=] { return os::guard(page, os::page_size()); };
  while (guard()) continue;
  for (SlicePool::Run& run : runs) pool.release(*run.first, kFirstRun);
  purge();
  ASSERT_LT(pool.gauges().space, kRegion) << "the second region is gone";
  EXPECT_TRUE(guard());
  EXPECT_TRUE(guard());
  EXPECT_FALSE(guard());
}

TEST_F(SlicePools, VisitsStartsOfSuperblocksAndRuns) {
  std::set<Slice*> expected, seen;
  for (ClassIndex c : {class_of(16), class_of(32768), class_of(1024)}) {
    Slice* first = take(slices_of(c)).first;
    Superblock::of(*first).format(c);
    expected.insert(first);
  }
  take(2);  // not in use
  pool.for_each([&](Slice& first) { seen.insert(&first); });
  EXPECT_EQ(seen, expected);
}

TEST_F(SlicePools, ThreadsThatRunOutTogetherOpenOneChunk) {
  for (int round = 0; round < 300; ++round) {
    Pool mine;
    std::barrier<> start(4);
    on_threads(4, [&](unsigned) {
      start.arrive_and_wait();
      mine.take(1);
    });
    ASSERT_EQ(mine.pool.chunks(), 1u);
    mine.purge();
  }
}

TEST_F(SlicePools, ThreadsAllocateReleaseAndPurge) {
  on_threads(4, [&](unsigned thread) {
    std::mt19937 random(kSeed + thread);
    for (int i = 0; i < 2000; ++i) {
      size_t n = random() % 8 + 1;
      SlicePool::Run run = take(n);
      long mark = thread * 10000 + i;
      memcpy(base(run), &mark, sizeof mark);
      if (i % 100 == 0) pool.purge(i % 200 == 0 ? SlicePool::Purge::kAll : SlicePool::Purge::kDue);
      ASSERT_EQ(memcmp(base(run), &mark, sizeof mark), 0);
      pool.release(*run.first, n);
    }
  });
  size_t free = pool.gauges().free_slices;  // the last chunk may be a region's first or another
  EXPECT_TRUE(free == slices_of_chunks(pool.chunks()) || free == slices_of_chunks(pool.chunks()) + kMetaSlices) << free;
}

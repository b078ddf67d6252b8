#include "hmalloc/slice_pool.h"

#include <cstdio>
#include <fstream>
#include <string>

#include "base/os_pages.h"
#include "hmalloc/options.h"
#include "support.h"

using namespace hm;

namespace {

struct Pool {  // each test has chunks of its own
  SlicePool pool;
  ~Pool() { pool.purge(true); }
  SlicePool* operator->() { return &pool; }
};
char* base(const SlicePool::Run& run) { return run.first->base(); }

}  // namespace

TEST(SlicePool, NothingWithoutMapping) {
  Pool pool;
  EXPECT_EQ(pool->allocate(1, false).first, nullptr);
  EXPECT_EQ(pool->chunks(), 0u);
}

TEST(SlicePool, RunsOfEveryLengthAreZeroedAndDisjoint) {
  Pool pool;
  std::vector<std::pair<SlicePool::Run, size_t>> runs;
  for (size_t n = 1; n <= SlicePool::kMaxRun; ++n) {
    SlicePool::Run run = pool->allocate(n, true);
    ASSERT_NE(run.first, nullptr);
    EXPECT_TRUE(run.zeroed);
    EXPECT_EQ(address_of(base(run)) % kSlice, 0u);
    EXPECT_EQ(AddressMap::kind(address_of(base(run))), ChunkKind::kSlices);
    for (size_t page = 0; page < n * kSlice; page += 4096) EXPECT_EQ(base(run)[page], 0);
    for (size_t page = 0; page < n * kSlice; page += 4096) base(run)[page] = static_cast<char>(n);
    runs.emplace_back(run, n);
  }
  for (auto& [run, n] : runs) {
    for (size_t page = 0; page < n * kSlice; page += 4096) ASSERT_EQ(base(run)[page], static_cast<char>(n));
    pool->release(*run.first, n);
  }
  EXPECT_EQ(pool->gauges().free_slices, pool->chunks() * SlicePool::kMaxRun);
}

TEST(SlicePool, FreedSlicesAreTakenFirstAndNotCalledZero) {
  Pool pool;
  SlicePool::Run first = pool->allocate(2, true), second = pool->allocate(1, true);
  memset(base(second), 1, kSlice);
  pool->release(*second.first, 1);
  SlicePool::Run again = pool->allocate(1, true);
  EXPECT_EQ(again.first, second.first);
  EXPECT_FALSE(again.zeroed);
  pool->release(*again.first, 1);
  pool->release(*first.first, 2);
}

TEST(SlicePool, ARunWithOneDirtySliceIsNotZeroed) {
  Pool pool;
  SlicePool::Run all = pool->allocate(SlicePool::kMaxRun, true);
  pool->release(*all.first, SlicePool::kMaxRun);
  EXPECT_EQ(pool->purge(true) / kSlice, SlicePool::kMaxRun);
  SlicePool::Run one = pool->allocate(1, true);
  EXPECT_TRUE(one.zeroed);
  pool->release(*one.first, 1);
  SlicePool::Run wide = pool->allocate(4, true);
  EXPECT_FALSE(wide.zeroed);
  pool->release(*wide.first, 4);
}

TEST(SlicePool, ExtendsInPlaceWhileThereIsRoom) {
  Pool pool;
  SlicePool::Run a = pool->allocate(2, true);
  EXPECT_TRUE(pool->extend(*a.first, 2, 5));
  SlicePool::Run b = pool->allocate(1, true);
  EXPECT_EQ(base(b), base(a) + 5 * kSlice);
  EXPECT_FALSE(pool->extend(*a.first, 5, 6)) << "b lies there";
  SlicePool::Run rest = pool->allocate(SlicePool::kMaxRun - 6, true);
  EXPECT_FALSE(pool->extend(*rest.first, SlicePool::kMaxRun - 6, SlicePool::kMaxRun - 5)) << "the chunk ends there";
  pool->release(*a.first, 5);
  pool->release(*b.first, 1);
  pool->release(*rest.first, SlicePool::kMaxRun - 6);
  EXPECT_EQ(pool->chunks(), 1u);
}

TEST(SlicePool, PurgeGivesFreeSlicesBackAndLeavesUsedOnes) {
  Pool pool;
  std::vector<SlicePool::Run> runs;
  for (int i = 0; i < 20; ++i) runs.push_back(pool->allocate(1, true));
  for (SlicePool::Run& run : runs) memset(base(run), 0x5a, kSlice);
  for (size_t i = 0; i < runs.size(); i += 2) pool->release(*runs[i].first, 1);
  EXPECT_EQ(pool->gauges().dirty_slices, 10u);
  EXPECT_EQ(pool->purge(true), 10 * kSlice);
  EXPECT_EQ(pool->gauges().dirty_slices, 0u);
  for (size_t i = 0; i < runs.size(); ++i)
    for (size_t at = 0; at < kSlice; at += 4096) ASSERT_EQ(base(runs[i])[at], i % 2 == 0 ? 0 : 0x5a);
  EXPECT_TRUE(pool->allocate(1, false).zeroed);
  pool->release(*runs[0].first, 1);
  for (size_t i = 1; i < runs.size(); i += 2) pool->release(*runs[i].first, 1);
}

TEST(SlicePool, ARoundGivesBackWhatWasFreedBeforeTheLast) {
  Pool pool;
  SlicePool::Run used = pool->allocate(1, true), freed = pool->allocate(3, true);
  pool->release(*freed.first, 3);
  EXPECT_EQ(pool->purge(false), 0u);
  EXPECT_EQ(pool->purge(false), 3 * kSlice);
  EXPECT_EQ(pool->purge(false), 0u);
  pool->release(*used.first, 1);
}

TEST(SlicePool, AChunkWithoutUsedSlicesIsUnmappedButTheLast) {
  Pool pool;
  SlicePool::Run a = pool->allocate(SlicePool::kMaxRun, true), b = pool->allocate(SlicePool::kMaxRun, true);
  EXPECT_EQ(pool->chunks(), 2u);
  uintptr_t first = address_of(base(a)), second = address_of(base(b));
  pool->release(*a.first, SlicePool::kMaxRun);
  pool->release(*b.first, SlicePool::kMaxRun);
  EXPECT_EQ(pool->purge(true), 2 * SlicePool::kMaxRun * kSlice);
  EXPECT_EQ(pool->chunks(), 1u);
  bool first_is_ours = AddressMap::kind(first) == ChunkKind::kSlices;
  EXPECT_EQ(AddressMap::kind(first_is_ours ? second : first), ChunkKind::kForeign);
  EXPECT_EQ(pool->gauges().free_slices, SlicePool::kMaxRun);
}

// The more chunks there are, the fewer calls it takes to map more.
TEST(SlicePool, ManyChunksTakeFewCalls) {
  Pool pool;
  std::vector<SlicePool::Run> runs;
  auto grow = [&](size_t chunks) {
    uint64_t before = os::calls();
    while (pool->chunks() < chunks) runs.push_back(pool->allocate(SlicePool::kMaxRun, true));
    return os::calls() - before;
  };
  EXPECT_GE(grow(4), 4u);
  grow(64);
  EXPECT_LE(grow(128), 64 / 16 * 4u);  // aligning a batch may take four calls
  EXPECT_EQ(pool->gauges().chunks, 128u);
  EXPECT_LE(pool->gauges().space, 16 * kChunk);
  for (SlicePool::Run& run : runs) pool->release(*run.first, SlicePool::kMaxRun);
}

// Whether the kernel was asked for huge pages there.
bool has_huge_pages(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  uintptr_t from = 0, to = 0;
  for (std::string line; std::getline(maps, line);) {
    if (sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2 && line.find('-') < line.find(' ')) continue;
    bool here = from <= address_of(address) && address_of(address) < to;
    if (here && line.rfind("VmFlags:", 0) == 0) return line.find(" hg") != std::string::npos;
  }
  return false;
}

TEST(SlicePool, HugePagesFromAFootprintOn) {
  Pool pool;
  options.huge_pages_after = 16 * kMiB;
  std::vector<SlicePool::Run> runs;
  for (size_t chunks = 1; chunks <= 10; ++chunks) {
    runs.push_back(pool->allocate(SlicePool::kMaxRun, true));
    EXPECT_EQ(has_huge_pages(base(runs.back())), chunks > 8) << chunks;
  }
  for (SlicePool::Run& run : runs) pool->release(*run.first, SlicePool::kMaxRun);
}

TEST(SlicePool, VisitsStartsOfSuperblocksAndRuns) {
  Pool pool;
  std::set<Superblock*> expected, seen;
  for (ClassIndex c : {class_of(16), class_of(32768), class_of(1024)}) {
    SlicePool::Run run = pool->allocate(slices_of(c), true);
    run.first->format(c);
    expected.insert(run.first);
  }
  SlicePool::Run unused = pool->allocate(2, true);
  pool->for_each([&](Superblock& sb) { seen.insert(&sb); });
  EXPECT_EQ(seen, expected);
  for (Superblock* sb : expected) {
    size_t n = slices_of(sb->class_index());
    sb->clear();
    pool->release(*sb, n);
  }
  pool->release(*unused.first, 2);
}

TEST(SlicePool, ThreadsAllocateReleaseAndPurge) {
  Pool pool;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&pool, t] {
      std::mt19937 random(test::kSeed + t);
      for (int i = 0; i < 2000; ++i) {
        size_t n = random() % 8 + 1;
        SlicePool::Run run = pool->allocate(n, true);
        ASSERT_NE(run.first, nullptr);
        long* mark = reinterpret_cast<long*>(base(run));
        *mark = static_cast<long>(t * 10000) + i;
        if (i % 100 == 0) pool->purge(i % 200 == 0);
        ASSERT_EQ(*mark, static_cast<long>(t * 10000) + i);
        pool->release(*run.first, n);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool->gauges().free_slices, pool->chunks() * SlicePool::kMaxRun);
}

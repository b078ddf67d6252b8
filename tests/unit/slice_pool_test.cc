#include "pages/slice_pool.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <barrier>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/os_pages.h"
#include "pages/options.h"
#include "support.h"

using namespace hm;

namespace {

struct Pool {  // each test has chunks of its own
  SlicePool pool;
  Pool() { options.retain_bytes = SIZE_MAX / 2; }  // what goes back at once has tests of its own
  ~Pool() { pool.purge(SlicePool::Purge::kAll); }
  SlicePool* operator->() { return &pool; }
};
char* base(const SlicePool::Run& run) { return run.first->base(); }
constexpr size_t kFirstRun = kSlicesInChunk - kMetaSlices;  // all of a region's first chunk
// All slices that these many chunks, the first ones of a region, can hold.
constexpr size_t slices_of_chunks(size_t chunks) {
  return chunks * kSlicesInChunk - divide_up(chunks, kChunksInRegion) * kMetaSlices;
}

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
  EXPECT_EQ(pool->gauges().free_slices, slices_of_chunks(pool->chunks()));
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
  SlicePool::Run all = pool->allocate(kFirstRun, true);
  pool->release(*all.first, kFirstRun);
  EXPECT_EQ(pool->purge(SlicePool::Purge::kAll) / kSlice, kFirstRun);
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
  SlicePool::Run rest = pool->allocate(kFirstRun - 6, true);
  EXPECT_FALSE(pool->extend(*rest.first, kFirstRun - 6, kFirstRun - 5)) << "the chunk ends there";
  pool->release(*a.first, 5);
  pool->release(*b.first, 1);
  pool->release(*rest.first, kFirstRun - 6);
  EXPECT_EQ(pool->chunks(), 1u);
}

TEST(SlicePool, PurgeGivesFreeSlicesBackAndLeavesUsedOnes) {
  Pool pool;
  std::vector<SlicePool::Run> runs;
  for (int i = 0; i < 20; ++i) runs.push_back(pool->allocate(1, true));
  for (SlicePool::Run& run : runs) memset(base(run), 0x5a, kSlice);
  for (size_t i = 0; i < runs.size(); i += 2) pool->release(*runs[i].first, 1);
  EXPECT_EQ(pool->gauges().dirty_slices, 10u);
  EXPECT_EQ(pool->purge(SlicePool::Purge::kAll), 10 * kSlice);
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
  EXPECT_EQ(pool->purge(SlicePool::Purge::kDue), 0u);
  EXPECT_EQ(pool->purge(SlicePool::Purge::kDue), 3 * kSlice);
  EXPECT_EQ(pool->purge(SlicePool::Purge::kDue), 0u);
  pool->release(*used.first, 1);
}

TEST(SlicePool, AChunkWithoutUsedSlicesIsClosedButTheLast) {
  Pool pool;
  SlicePool::Run a = pool->allocate(kFirstRun, true), b = pool->allocate(kSlicesInChunk, true);
  EXPECT_EQ(pool->chunks(), 2u);
  uintptr_t first = address_of(base(a)), second = address_of(base(b));
  memset(base(b), 1, kChunk);
  pool->release(*a.first, kFirstRun);
  pool->release(*b.first, kSlicesInChunk);
  EXPECT_EQ(pool->purge(SlicePool::Purge::kAll), slices_of_chunks(2) * kSlice);
  EXPECT_EQ(pool->chunks(), 1u);
  bool first_is_ours = AddressMap::kind(first) == ChunkKind::kSlices;
  EXPECT_EQ(AddressMap::kind(first_is_ours ? second : first), ChunkKind::kGone);
  EXPECT_EQ(pool->gauges().free_slices, first_is_ours ? kFirstRun : kSlicesInChunk);
  EXPECT_EQ(pool->gauges().space, kRegion - kChunk);
}

namespace {

// A pool that retains nothing, with so many runs of two slices, a page of 64 KB, in use.
struct Pairs {
  explicit Pairs(size_t pairs) {
    options.retain_bytes = 0;
    options.huge_pages_after = SIZE_MAX / 2;
    for (size_t i = 0; i < pairs; ++i) {
      runs.push_back(pool->allocate(2, true));
      *base(runs.back()) = 1;
    }
  }
  ~Pairs() {
    for (SlicePool::Run& run : runs)
      if (run.first != nullptr) release(run);
  }
  void release(SlicePool::Run& run) { pool->release(*std::exchange(run.first, nullptr), 2); }
  size_t waiting() { return pool->gauges().dirty_slices; }
  Pool pool;
  std::vector<SlicePool::Run> runs;
};

}  // namespace

TEST(SlicePool, HolesWaitUntilTheyAreAnEighthOfWhatIsInUse) {
  Pairs pairs(400);
  size_t most = 0;
  for (size_t i = 0; i < pairs.runs.size(); i += 2) {
    pairs.release(pairs.runs[i]);
    size_t waiting = pairs.waiting();
    most = std::max(most, waiting);
    ASSERT_LE(waiting, std::max(pairs.pool->used() / 8, size_t{4})) << i;
  }
  EXPECT_GT(most, 60u);
  for (SlicePool::Run& run : pairs.runs)
    if (run.first != nullptr) pairs.release(run);
  EXPECT_LE(pairs.waiting(), 4u);
}

TEST(SlicePool, AChunkWithoutUsedSlicesGoesBeforeHoles) {
  Pairs pairs(16 * kSlicesInChunk / 2);
  uintptr_t emptied = align_down(address_of(base(pairs.runs[100])), kChunk);
  auto is_there = [&](const SlicePool::Run& run) { return align_down(address_of(base(run)), kChunk) == emptied; };
  for (size_t i = 400; i < 410; i += 2) pairs.release(pairs.runs[i]);
  size_t holes = pairs.waiting();
  EXPECT_EQ(holes, 10u);
  for (SlicePool::Run& run : pairs.runs)
    if (run.first != nullptr && is_there(run)) pairs.release(run);
  EXPECT_EQ(AddressMap::kind(emptied), ChunkKind::kGone);
  EXPECT_EQ(pairs.waiting(), holes);
}

// Its pages are locked, say.
TEST(SlicePool, WhatTheSystemRefusesIsLeftAloneAndKeepsNothingElse) {
  Pairs pairs(600);
  constexpr size_t kLocked = 8;  // slices: more than may wait
  char* locked = base(pairs.runs[300]);
  // By the number, for sanitizers make nothing of mlock.
  if (syscall(SYS_mlock, locked, kLocked * kSlice) != 0) GTEST_SKIP() << "no memory may be locked";
  for (size_t i = 0; i < kLocked / 2; ++i) std::swap(pairs.runs[i], pairs.runs[300 + i]);  // neighbours come back after them
  size_t calls = 0;
  for (SlicePool::Run& run : pairs.runs) {
    uint64_t before = os::calls();
    pairs.release(run);
    calls = std::max<size_t>(calls, os::calls() - before);
  }
  EXPECT_LE(calls, 2 * kSlicesInChunk);
  EXPECT_EQ(pairs.waiting(), kLocked);
  uint64_t before = os::calls();
  for (int i = 0; i < 50; ++i) {
    SlicePool::Run run = pairs.pool->allocate(2, true);
    pairs.pool->release(*run.first, 2);
  }
  EXPECT_EQ(os::calls(), before) << "no free asks again";
  EXPECT_EQ(AddressMap::kind(address_of(locked)), ChunkKind::kSlices);
  EXPECT_EQ(*locked, 1);
  syscall(SYS_munlock, locked, kLocked * kSlice);
  pairs.pool->purge(SlicePool::Purge::kAll);
  EXPECT_EQ(pairs.waiting(), 0u);
  EXPECT_EQ(pairs.pool->chunks(), 1u);
}

TEST(SlicePool, WhatIsFreedBesideAPurgeIsNotForgotten) {
  for (int round = 0; round < 60; ++round) {
    Pairs pairs(600);
    std::barrier start(2);
    std::thread purger([&] {
      start.arrive_and_wait();
      pairs.pool->purge(SlicePool::Purge::kAll);
    });
    start.arrive_and_wait();
    for (SlicePool::Run& run : pairs.runs) pairs.release(run);
    purger.join();
    ASSERT_LE(pairs.waiting(), 4u) << round;
  }
}

TEST(SlicePool, AChunkThatWasNeverUsedIsClosedToo) {
  Pool pool;
  std::vector<SlicePool::Run> runs;
  while (pool->chunks() <= 3 * kChunksInRegion) runs.push_back(pool->allocate(kSlicesInChunk, true));
  for (SlicePool::Run& run : runs) pool->release(*run.first, kSlicesInChunk);
  pool->purge(SlicePool::Purge::kAll);
  EXPECT_EQ(pool->chunks(), 1u);
  EXPECT_EQ(pool->gauges().space, kRegion - kChunk);
}

TEST(SlicePool, AsksWhetherTheNextRunIsResident) {
  Pool pool;
  SlicePool::Run rest = pool->allocate(kFirstRun, true), cold = pool->allocate(kSlicesInChunk, true),
                 warm = pool->allocate(kSlicesInChunk, true);
  EXPECT_FALSE(pool->has_resident(2));
  pool->release(warm.first[0], 2);
  EXPECT_TRUE(pool->has_resident(2));
  pool->release(cold.first[0], 2);  // what was opened to freeing last comes first
  pool->purge(SlicePool::Purge::kAll);
  pool->release(warm.first[2], 4);
  EXPECT_FALSE(pool->has_resident(2));
  EXPECT_TRUE(pool->has_resident(4));
  pool->release(*rest.first, kFirstRun);
  pool->release(cold.first[2], kSlicesInChunk - 2);
  pool->release(warm.first[6], kSlicesInChunk - 6);
}

TEST(SlicePool, AClosedChunkServesAgainAndIsZero) {
  Pool pool;
  SlicePool::Run a = pool->allocate(1, true), b = pool->allocate(kSlicesInChunk, true);
  memset(base(b), 1, kChunk);
  uintptr_t second = address_of(base(b));
  pool->release(*b.first, kSlicesInChunk);
  pool->purge(SlicePool::Purge::kAll);
  EXPECT_EQ(AddressMap::kind(second), ChunkKind::kGone);
  b = pool->allocate(kSlicesInChunk, true);
  EXPECT_EQ(address_of(base(b)), second);
  EXPECT_TRUE(b.zeroed);
  EXPECT_TRUE(test::is_zero(base(b), kChunk));
  EXPECT_EQ(AddressMap::kind(second), ChunkKind::kSlices);
  pool->release(*a.first, 1);
  pool->release(*b.first, kSlicesInChunk);
}

TEST(SlicePool, ARegionWithoutOpenChunksIsUnmapped) {
  Pool pool;
  std::vector<SlicePool::Run> runs;
  while (pool->chunks() <= 2 * kChunksInRegion) runs.push_back(pool->allocate(kFirstRun, true));
  EXPECT_EQ(pool->gauges().space, 3 * kRegion - (2 * kChunksInRegion + 1) * kChunk);
  for (SlicePool::Run& run : runs) pool->release(*run.first, kFirstRun);
  pool->purge(SlicePool::Purge::kAll);
  EXPECT_EQ(pool->chunks(), 1u);
  EXPECT_EQ(pool->gauges().space, kRegion - kChunk);
}

TEST(SlicePool, ARegionThatIsUnmappedGivesItsGuardsBack) {
  Pool pool;
  pool->allocate(1, true);
  std::vector<SlicePool::Run> runs;
  while (pool->chunks() <= kChunksInRegion) runs.push_back(pool->allocate(kFirstRun, true));
  void* page = os::map(1, os::page_size());
  while (os::guard(page, os::page_size())) continue;
  for (SlicePool::Run& run : runs) pool->release(*run.first, kFirstRun);
  pool->purge(SlicePool::Purge::kAll);
  ASSERT_LT(pool->gauges().space, kRegion) << "the second region is gone";
  EXPECT_TRUE(os::guard(page, os::page_size()));
  EXPECT_TRUE(os::guard(page, os::page_size()));
  EXPECT_FALSE(os::guard(page, os::page_size()));
}

TEST(SlicePool, ChunksOfARegionTakeOneMapping) {
  Pool pool;
  std::vector<SlicePool::Run> runs{pool->allocate(kFirstRun, true)};
  uint64_t before = os::calls();
  while (pool->chunks() < kChunksInRegion) runs.push_back(pool->allocate(kSlicesInChunk, true));
  EXPECT_EQ(os::calls(), before);
  for (SlicePool::Run& run : runs) pool->release(*run.first, &run == &runs[0] ? kFirstRun : kSlicesInChunk);
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

// Seven chunks, of which the program touches every page or one in four; which of them have huge pages, in order.
std::string chunks_with_huge_pages(size_t stride, size_t reuses) {
  Pool pool;
  std::vector<std::pair<SlicePool::Run, size_t>> runs;
  std::string huge;
  while (pool->chunks() < 7) {
    size_t n = pool->chunks() == 0 ? kFirstRun : kSlicesInChunk;
    runs.emplace_back(pool->allocate(n, true), n);
    for (size_t at = 0; at < n * kSlice; at += stride) base(runs.back().first)[at] = 1;
    huge += has_huge_pages(base(runs.back().first)) ? 'h' : '.';
    for (size_t i = 0; i < reuses; ++i) pool->count_reuse();
  }
  for (auto& [run, n] : runs) pool->release(*run.first, n);
  return huge;
}

// Where one of these took long, the next are small ones.
void expect_huge_from(const std::string& huge, size_t from) { EXPECT_EQ(huge.find('h'), from) << huge; }

TEST(SlicePool, HugePagesFromAFootprintOn) {
  options.huge_pages_after = 8 * kMiB;
  expect_huge_from(chunks_with_huge_pages(os::page_size(), 100), 4);
}

TEST(SlicePool, HugePagesSoonerWhereTheProgramOnlyGrows) {
  options.huge_pages_after = 32 * kMiB;
  expect_huge_from(chunks_with_huge_pages(os::page_size(), 0), 2);
  expect_huge_from(chunks_with_huge_pages(os::page_size(), 100), std::string::npos);
}

TEST(SlicePool, NoHugePagesWhereMemoryIsUsedHereAndThere) {
  options.huge_pages_after = 0;
  expect_huge_from(chunks_with_huge_pages(os::page_size(), 0), 1);
  expect_huge_from(chunks_with_huge_pages(4 * os::page_size(), 0), std::string::npos);
}

// Free slices of a huge page are memory too.
TEST(SlicePool, UnusedSlicesOfAHugePageGoBack) {
  options.huge_pages_after = 0;
  Pool pool;
  SlicePool::Run first = pool->allocate(kFirstRun, true);
  memset(base(first), 1, kFirstRun * kSlice);
  SlicePool::Run run = pool->allocate(1, true);
  ASSERT_TRUE(has_huge_pages(base(run)));
  EXPECT_TRUE(run.zeroed);
  EXPECT_EQ(pool->gauges().dirty_slices, kSlicesInChunk - 1);
  EXPECT_EQ(pool->purge(SlicePool::Purge::kAll), (kSlicesInChunk - 1) * kSlice);
  EXPECT_EQ(pool->gauges().dirty_slices, 0u);
  EXPECT_FALSE(has_huge_pages(base(run))) << "or the system would fill the holes again";
  pool->release(*run.first, 1);
  pool->release(*first.first, kFirstRun);
}

// Huge pages are asked for from one chunk on to the end of its region, and others may be open there.
TEST(SlicePool, AnOpenChunkThatGetsHugePagesIsCountedAnew) {
  options.huge_pages_after = SIZE_MAX;
  Pool pool;
  pool->allocate(kFirstRun, true);
  SlicePool::Run second = pool->allocate(kSlicesInChunk, true), third = pool->allocate(kSlicesInChunk, true);
  memset(base(third), 1, kSlicesInChunk * kSlice);
  pool->release(*second.first, kSlicesInChunk);
  pool->purge(SlicePool::Purge::kAll);
  pool->release(*third.first, 10);
  options.huge_pages_after = 0;
  SlicePool::Run again = pool->allocate(kSlicesInChunk, true);
  ASSERT_EQ(base(again), base(second));
  ASSERT_TRUE(has_huge_pages(base(third)));
  EXPECT_TRUE(pool->is_valid());
}

TEST(HugePagePolicy, APauseAfterASlowOne) {
  HugePagePolicy pages;
  auto pause = [&] {
    size_t n = 0;
    while (pages.pausing()) ++n;
    return n;
  };
  EXPECT_EQ(pause(), 0u);
  EXPECT_TRUE(pages.took(HugePagePolicy::kSlow + 1));
  EXPECT_EQ(pause(), HugePagePolicy::kFirstPause);
  EXPECT_TRUE(pages.took(HugePagePolicy::kSlow + 1));
  EXPECT_EQ(pause(), 2 * HugePagePolicy::kFirstPause);
  for (int i = 0; i < 20; ++i) pages.took(HugePagePolicy::kSlow + 1);
  EXPECT_EQ(pause(), HugePagePolicy::kLongestPause);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(pages.took(HugePagePolicy::kSlow));
  EXPECT_EQ(pause(), 0u);
  pages.took(HugePagePolicy::kSlow + 1);
  EXPECT_EQ(pause(), HugePagePolicy::kFirstPause) << "the quick ones have made up for it";
}

TEST(SlicePool, VisitsStartsOfSuperblocksAndRuns) {
  Pool pool;
  std::set<Slice*> expected, seen;
  for (ClassIndex c : {class_of(16), class_of(32768), class_of(1024)}) {
    SlicePool::Run run = pool->allocate(slices_of(c), true);
    Superblock::of(*run.first).format(c);
    expected.insert(run.first);
  }
  SlicePool::Run unused = pool->allocate(2, true);
  pool->for_each([&](Slice& first) { seen.insert(&first); });
  EXPECT_EQ(seen, expected);
  for (Slice* first : expected) {
    Superblock& sb = Superblock::of(*first);
    size_t n = slices_of(sb.class_index());
    sb.clear();
    pool->release(sb, n);
  }
  pool->release(*unused.first, 2);
}

TEST(SlicePool, ThreadsThatRunOutTogetherOpenOneChunk) {
  for (int round = 0; round < 300; ++round) {
    Pool pool;
    std::barrier<> start(4);
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        start.arrive_and_wait();
        EXPECT_NE(pool->allocate(1, true).first, nullptr);
      });
    threads.clear();
    ASSERT_EQ(pool->chunks(), 1u);
  }
}

TEST(SlicePool, ARunThatFillsAChunkSkipsTheFirstOfARegion) {
  Pool pool;
  SlicePool::Run run = pool->allocate(SlicePool::kMaxRun, true);
  ASSERT_NE(run.first, nullptr);
  EXPECT_EQ(run.first->slice() % kSlicesInChunk, 0u);
  EXPECT_EQ(pool->chunks(), 2u);
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
        if (i % 100 == 0) pool->purge(i % 200 == 0 ? SlicePool::Purge::kAll : SlicePool::Purge::kDue);
        ASSERT_EQ(*mark, static_cast<long>(t * 10000) + i);
        pool->release(*run.first, n);
      }
    });
  for (std::thread& thread : threads) thread.join();
  size_t free = pool->gauges().free_slices;  // the last chunk may be a region's first or another
  EXPECT_TRUE(free == slices_of_chunks(pool->chunks()) || free == slices_of_chunks(pool->chunks()) + kMetaSlices) << free;
}

// Which slices go back to the system, and when; which chunks get huge pages, that is more than is asked for.
#include <sys/syscall.h>

#include <atomic>
#include <barrier>
#include <thread>
#include <utility>

#include "base/os_pages.h"
#include "pages/slice_pool.h"
#include "slices.h"

using namespace hm;
using namespace hm::test;

namespace {

struct SlicePoolPurge : testing::Test, Pool {};

}  // namespace

TEST_F(SlicePoolPurge, GivesFreeSlicesBackAndLeavesUsedOnes) {
  std::vector<SlicePool::Run> runs(20);
  for (SlicePool::Run& run : runs) fill_slices(base(run = take(1)), 1, 0x5a);
  for (size_t i = 0; i < runs.size(); i += 2) pool.release(*runs[i].first, 1);
  EXPECT_EQ(pool.gauges().dirty_slices, 10u);
  EXPECT_EQ(purge(), 10 * kSlice);
  EXPECT_EQ(pool.gauges().dirty_slices, 0u);
  for (size_t i = 0; i < runs.size(); ++i) ASSERT_TRUE(is_filled(base(runs[i]), 1, i % 2 == 0 ? 0 : 0x5a)) << i;
  EXPECT_TRUE(pool.allocate(1, false).zeroed);
}

TEST_F(SlicePoolPurge, ARoundGivesBackWhatWasFreedBeforeTheLast) {
  take(1);
  pool.release(*take(3).first, 3);
  for (size_t slices : {0, 3, 0}) EXPECT_EQ(pool.purge(SlicePool::Purge::kDue), slices * kSlice);
}

TEST_F(SlicePoolPurge, ARoundLeavesWhatIsInUseAgain) {
  take(1);
  pool.release(*take(3).first, 3);
  pool.purge(SlicePool::Purge::kDue);
  char* again = base(take(3));
  fill_slices(again, 3, 1);
  pool.purge(SlicePool::Purge::kDue);
  EXPECT_TRUE(is_filled(again, 3, 1));
  EXPECT_TRUE(pool.is_valid());
}

TEST_F(SlicePoolPurge, AsksWhetherTheNextRunIsResident) {
  use_no_huge_pages();
  take(kFirstRun);
  SlicePool::Run cold = take(kSlicesInChunk), warm = take(kSlicesInChunk);
  EXPECT_FALSE(pool.has_resident(2));
  pool.release(warm.first[0], 2);
  EXPECT_TRUE(pool.has_resident(2));
  pool.release(cold.first[0], 2);  // what was opened to freeing last comes first
  purge();
  pool.release(warm.first[2], 4);
  EXPECT_FALSE(pool.has_resident(2));
  EXPECT_TRUE(pool.has_resident(4));
}

namespace {

// A pool that retains nothing, with so many runs of two slices, a page of 64 KB, in use.
struct Pairs : Pool {
  explicit Pairs(size_t pairs) : runs(pairs) {
    options.retain_bytes = 0;
    options.huge_pages_after = SIZE_MAX / 2;
    for (SlicePool::Run& run : runs) *base(run = take(2)) = 1;
  }
  void release(SlicePool::Run& run) {
    if (run.first != nullptr) pool.release(*std::exchange(run.first, nullptr), 2);
  }
  void release_all() {
    for (SlicePool::Run& run : runs) release(run);
  }
  size_t waiting() { return pool.gauges().dirty_slices; }
  std::vector<SlicePool::Run> runs;
};

}  // namespace

TEST(SlicePoolSurplus, HolesWaitUntilTheyAreAnEighthOfWhatIsInUse) {
  Pairs pairs(400);
  size_t most = 0;
  for (size_t i = 0; i < pairs.runs.size(); i += 2) {
    pairs.release(pairs.runs[i]);
    ASSERT_LE(pairs.waiting(), std::max(pairs.pool.used() / 8, size_t{4})) << i;
    most = std::max(most, pairs.waiting());
  }
  EXPECT_GT(most, 60u);
  pairs.release_all();
  EXPECT_LE(pairs.waiting(), 4u);
}

TEST(SlicePoolSurplus, AChunkWithoutUsedSlicesGoesBeforeHoles) {
  Pairs pairs(16 * kSlicesInChunk / 2);
  uintptr_t emptied = align_down(address_of(base(pairs.runs[100])), kChunk);
  for (size_t i = 400; i < 410; i += 2) pairs.release(pairs.runs[i]);
  EXPECT_EQ(pairs.waiting(), 10u);
  for (SlicePool::Run& run : pairs.runs)
    if (run.first != nullptr && align_down(address_of(base(run)), kChunk) == emptied) pairs.release(run);
  EXPECT_EQ(AddressMap::kind(emptied), ChunkKind::kGone);
  EXPECT_EQ(pairs.waiting(), 10u);
}

// Its pages are locked, say.
TEST(SlicePoolSurplus, WhatTheSystemRefusesIsLeftAloneAndKeepsNothingElse) {
  Pairs pairs(600);
  constexpr size_t kLocked = 8;  // slices: more than may wait
  char* locked = base(pairs.runs[300]);
  // By the number, for sanitizers make nothing of mlock.
  if (syscall(SYS_mlock, locked, kLocked * kSlice) != 0) GTEST_SKIP() << "no memory may be locked";
  for (size_t i = 0; i < kLocked / 2; ++i) std::swap(pairs.runs[i], pairs.runs[300 + i]);  // neighbours come back after them
  uint64_t most_calls = 0;
  for (SlicePool::Run& run : pairs.runs) {
    uint64_t before = os::calls();
    pairs.release(run);
    most_calls = std::max(most_calls, os::calls() - before);
  }
  EXPECT_LE(most_calls, 2 * kSlicesInChunk);
  EXPECT_EQ(pairs.waiting(), kLocked);
  uint64_t before = os::calls();
  for (int i = 0; i < 50; ++i) pairs.pool.release(*pairs.take(2).first, 2);
  EXPECT_EQ(os::calls(), before) << "no free asks again";
  for (int i = 0; i < 12; ++i) pairs.pool.purge(SlicePool::Purge::kDue);  // they are due in every second round
  EXPECT_LE(os::calls() - before, 6 * 8u) << "a round asks for them together, and not for each";
  EXPECT_EQ(kind_of(locked), ChunkKind::kSlices);
  EXPECT_EQ(*locked, 1);
  syscall(SYS_munlock, locked, kLocked * kSlice);
  pairs.purge();
  EXPECT_EQ(pairs.waiting(), 0u);
  EXPECT_EQ(pairs.pool.chunks(), 1u);
}

TEST(SlicePoolSurplus, WhatIsFreedBesideAPurgeIsNotForgotten) {
  for (int round = 0; round < 200; ++round) {
    Pairs pairs(600);
    std::barrier start(2);
    on_threads(2, [&](unsigned thread) {
      start.arrive_and_wait();
      thread == 0 ? (void)pairs.purge() : pairs.release_all();
    });
    ASSERT_LE(pairs.waiting(), 4u) << round;
    pairs.purge();
  }
}

namespace {

// The first of seven chunks that has huge pages where the program touches a byte in each stride; npos: none.  Where one took
// long, the next are small ones.
size_t first_huge_chunk(size_t stride, size_t reuses) {
  Pool pool;
  std::string huge;
  while (huge.size() < 7) {
    size_t n = huge.empty() ? kFirstRun : kSlicesInChunk;
    char* run = base(pool.take(n));
    for (size_t at = 0; at < n * kSlice; at += stride) run[at] = 1;
    huge += has_huge_pages(run) ? 'h' : '.';
    for (size_t i = 0; i < reuses; ++i) pool.pool.count_reuse();
  }
  return huge.find('h');
}

struct SlicePoolHugePages : testing::Test {
  void SetUp() override {
    HM_NEEDS(kHeedsAdvice);
    use_no_huge_pages();
  }
};

}  // namespace

TEST_F(SlicePoolHugePages, FromAFootprintOn) {
  options.huge_pages_after = 8 * kMiB;
  EXPECT_EQ(first_huge_chunk(os::page_size(), 100), 4u);
}

TEST_F(SlicePoolHugePages, SoonerWhereTheProgramOnlyGrows) {
  options.huge_pages_after = 32 * kMiB;
  EXPECT_EQ(first_huge_chunk(os::page_size(), 0), 2u);
  EXPECT_EQ(first_huge_chunk(os::page_size(), 100), std::string::npos);
}

TEST_F(SlicePoolHugePages, NoneWhereMemoryIsUsedHereAndThere) {
  options.huge_pages_after = 0;
  EXPECT_EQ(first_huge_chunk(os::page_size(), 0), 1u);
  EXPECT_EQ(first_huge_chunk(4 * os::page_size(), 0), std::string::npos);
}

// Where the system has them always, too.
TEST_F(SlicePoolHugePages, NoneThatWereNotAskedFor) {
  options.huge_pages_after = SIZE_MAX / 2;
  Pool pool;
  SlicePool::Run first = pool.take(kFirstRun), second = pool.take(kSlicesInChunk);
  EXPECT_TRUE(has_small_pages(base(first)) && has_small_pages(base(second)));
  EXPECT_TRUE(has_small_pages(AddressMap::all().data() + AddressMap::all().size() / 2));
}

// They are memory too.
TEST_F(SlicePoolHugePages, UnusedSlicesOfOneGoBack) {
  options.huge_pages_after = 0;
  Pool pool;
  memset(base(pool.take(kFirstRun)), 1, kFirstRun * kSlice);
  SlicePool::Run run = pool.take(1);
  ASSERT_TRUE(has_huge_pages(base(run)));
  EXPECT_TRUE(run.zeroed);
  EXPECT_EQ(pool.pool.gauges().dirty_slices, kSlicesInChunk - 1);
  EXPECT_EQ(pool.purge(), (kSlicesInChunk - 1) * kSlice);
  EXPECT_EQ(pool.pool.gauges().dirty_slices, 0u);
  EXPECT_FALSE(has_huge_pages(base(run))) << "or the system would fill the holes again";
}

// As the child of a fork in the middle of a purge does.
TEST_F(SlicePoolHugePages, CountsAreRightWhileUnusedSlicesGoBack) {
  options.huge_pages_after = 0;
  for (int round = 0; round < 100; ++round) {
    Pool pool;
    SlicePool::Run first = pool.take(kFirstRun);
    memset(base(first), 1, kFirstRun * kSlice);
    pool.pool.release(*first.first, 4);
    pool.take(6);  // whole pages, whatever their size
    std::atomic<bool> looking{false}, over{false};
    std::thread looker([&] {
      do {
        EXPECT_TRUE(pool.pool.is_valid());
        looking = true;
      } while (!over);
    });
    while (!looking) {}
    pool.purge();
    over = true;
    looker.join();
  }
}

// A large run that does not fit leaves the rest of a chunk unused, and that chunk tells of the program nevertheless.
TEST_F(SlicePoolHugePages, AChunkThatIsUsedForTheMostPartIsASample) {
  for (size_t used : {60, 20}) {
    options.huge_pages_after = 0;
    Pool pool;
    pool.take(kFirstRun);  // not touched
    char* run = base(pool.take(used));
    EXPECT_FALSE(has_huge_pages(run));
    memset(run, 1, used * kSlice);
    EXPECT_EQ(has_huge_pages(base(pool.take(kSlicesInChunk))), used == 60) << used;
  }
}

// The first blocks of many classes do not tell that it reuses memory.  On a busy machine the system may take long for a huge page,
// and then there is none for a while: so it has several tries, in processes that have no chunk yet.
TEST_F(SlicePoolHugePages, AProgramThatBuildsUpGetsThemEarly) {
  auto build_up_to = [](size_t chunks) {
    void* block = nullptr;
    while (slice_pool.chunks() < chunks) block = memset(hm_malloc(64), 1, 64);
    return block;
  };
  auto gets_one = [=] {
    build_up_to(2);
    for (size_t c = 5; c < 16; ++c)
      for (void* block : allocate_many(150, kClassSize[c])) memset(block, 1, kClassSize[c]);
    return Chunk::of(Superblock::of(address_of(build_up_to(3)))).huge;
  };
  bool huge = false;
  for (int tries = 0; tries < 8 && !huge; ++tries) huge = child_succeeds(gets_one);
  EXPECT_TRUE(huge);
}

TEST_F(SlicePoolHugePages, AChunkThatLosesThemIsCountedAnew) {
  options.huge_pages_after = 0;
  Pool pool;
  options.retain_bytes = 0;
  memset(base(pool.take(kFirstRun)), 1, kFirstRun * kSlice);
  SlicePool::Run second = pool.take(kSlicesInChunk);
  pool.pool.release(*second.first, 2);
  ASSERT_EQ(pool.pool.surplus_bytes(), 0u) << "of a huge page that is in use";
  pool.pool.give_up_huge_page(*second.first);
  EXPECT_EQ(pool.pool.surplus_bytes(), 2 * kSlice);
  EXPECT_TRUE(pool.pool.is_valid());
}

// They are asked for from one chunk on to the end of its region, and others may be open there.
// A chunk that nobody uses, but for a page that is locked: most of its slices were never touched.
TEST(SlicePoolSurplus, OneLockedPageDoesNotHaveAllSlicesTried) {
  Pool pool;
  pool.take(kFirstRun);
  SlicePool::Run run = pool.take(10);
  memset(base(run), 1, 10 * kSlice);
  if (syscall(SYS_mlock, base(run) + 3 * kSlice, 1) != 0) GTEST_SKIP() << "no memory may be locked";
  pool.pool.release(*run.first, 10);
  for (int i = 0; i < 4; ++i) pool.pool.purge(SlicePool::Purge::kDue);
  uint64_t before = os::calls();
  for (int i = 0; i < 12; ++i) pool.pool.purge(SlicePool::Purge::kDue);
  EXPECT_LE(os::calls() - before, 6 * 8u);
  EXPECT_EQ(kind_of(base(run)), ChunkKind::kSlices);
  syscall(SYS_munlock, base(run) + 3 * kSlice, 1);
  for (int i = 0; i < 2; ++i) pool.pool.purge(SlicePool::Purge::kDue);
  EXPECT_EQ(kind_of(base(run)), ChunkKind::kGone);
}

// The system would fill the holes of one that has given them up.
TEST_F(SlicePoolHugePages, AnOpenChunkStaysAsItIs) {
  options.huge_pages_after = SIZE_MAX;
  Pool pool;
  pool.take(kFirstRun);
  SlicePool::Run second = pool.take(kSlicesInChunk), third = pool.take(kSlicesInChunk);
  memset(base(third), 1, kSlicesInChunk * kSlice);
  pool.pool.release(*second.first, kSlicesInChunk);
  pool.purge();
  pool.pool.release(*third.first, 10);
  options.huge_pages_after = 0;
  ASSERT_EQ(base(pool.take(kSlicesInChunk)), base(second));
  EXPECT_TRUE(has_huge_pages(base(second)));
  EXPECT_FALSE(has_huge_pages(base(third)));
  EXPECT_TRUE(pool.pool.is_valid());
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

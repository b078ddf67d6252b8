// Where the system has no more addresses to give: what is mapped then, and what goes back first.
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/os_pages.h"
#include "large/huge.h"
#include "slices.h"
#include "upkeep/reclaim.h"

using namespace hm;
using namespace hm::test;

namespace {

// While it lives the process can map only so much more.
class MoreAddresses {
 public:
  explicit MoreAddresses(size_t bytes) {
    size_t now = mapped_bytes();
    EXPECT_EQ(getrlimit(RLIMIT_AS, &before_), 0);
    rlimit limit{now + bytes, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  }
  ~MoreAddresses() { EXPECT_EQ(setrlimit(RLIMIT_AS, &before_), 0); }
  MoreAddresses(const MoreAddresses&) = delete;
  MoreAddresses& operator=(const MoreAddresses&) = delete;

 private:
  rlimit before_{};
};

struct AddressLimit : testing::Test, Pool {
  void SetUp() override { HM_NEEDS(kLimitsAddresses); }
  size_t region_bytes() { return pool.gauges().space + pool.chunks() * kChunk; }
};

constexpr size_t kSpare = kMiB;  // for what the test program maps itself

}  // namespace

TEST_F(AddressLimit, AnAlignedMappingNeedsNoMoreThanItself) {
  void* in_the_way = os::map(os::page_size(), os::page_size());
  char* all[4];
  {
    MoreAddresses limit(4 * kRegion + kSpare);
    for (char*& each : all) each = static_cast<char*>(os::map(kRegion, kRegion));
    EXPECT_EQ(os::map(kRegion, kRegion), nullptr);
    for (char* each : all) ASSERT_NE(each, nullptr);
    EXPECT_TRUE(os::unmap(all[1], kRegion));
    all[1] = static_cast<char*>(os::map(kRegion, 2 * kRegion, kChunk));
    ASSERT_NE(all[1], nullptr);
    EXPECT_EQ((address_of(all[1]) + kChunk) % (2 * kRegion), 0u);
  }
  for (char* each : all) os::unmap(each, kRegion);
  os::unmap(in_the_way, os::page_size());
}

TEST_F(AddressLimit, APlaceThatIsTakenStaysAsItIs) {
  auto* mine = static_cast<char*>(os::map(2 * os::page_size(), os::page_size()));
  mine[0] = mine[os::page_size()] = 7;
  EXPECT_EQ(os::map_there(mine, os::page_size()), os::Mapped::kTaken);
  os::unmap(mine, os::page_size());
  EXPECT_EQ(os::map_there(mine, 2 * os::page_size()), os::Mapped::kTaken);
  EXPECT_EQ(os::map_there(mine, os::page_size()), os::Mapped::kYes);
  EXPECT_EQ(mine[0], 0);
  EXPECT_EQ(mine[os::page_size()], 7);
  MoreAddresses limit(0);
  EXPECT_EQ(os::map_there(mine + 64 * kMiB, kChunk), os::Mapped::kRefused);
}

// A whole region cannot be had, but parts of one can.
TEST_F(AddressLimit, ARegionIsMappedChunkByChunk) {
  for (size_t slices : {kFirstRun, kSlicesInChunk}) {
    Pool mine;
    std::vector<SlicePool::Run> runs;
    {
      MoreAddresses limit(5 * kChunk + kSpare);
      for (SlicePool::Run run; (run = mine.pool.allocate(slices, true)).first != nullptr;) runs.push_back(run);
    }
    EXPECT_EQ(mine.pool.chunks(), 5u);
    EXPECT_EQ(mine.pool.gauges().space, 0u);
    EXPECT_TRUE(mine.pool.is_valid());
    for (SlicePool::Run& run : runs) EXPECT_TRUE(is_filled(base(run), slices, 0));
    for (SlicePool::Run& run : runs) mine.pool.release(*run.first, slices);
    mine.take(kSlicesInChunk);
    EXPECT_TRUE(mine.pool.is_valid());
  }
}

TEST_F(AddressLimit, ClosedChunksAreUnmappedAndMappedAgain) {
  options.huge_pages_after = SIZE_MAX / 2;
  std::vector<SlicePool::Run> runs(kChunksInRegion - 1);
  for (SlicePool::Run& run : runs) run = take(kSlicesInChunk);
  for (size_t i : {1, 2, 4}) {
    memset(base(runs[i]), 1, kChunk);
    pool.release(*runs[i].first, kSlicesInChunk);
  }
  purge();
  EXPECT_EQ(region_bytes(), kRegion);
  pool.unmap_closed();
  EXPECT_EQ(region_bytes(), kRegion - 3 * kChunk);
  EXPECT_TRUE(pool.is_valid());
  // Another mapping may lie there now, and stays when the region is used again and goes.
  char* foreign = base(runs[1]);
  ASSERT_EQ(os::map_there(foreign, os::page_size()), os::Mapped::kYes);
  *foreign = 7;
  {
    MoreAddresses limit(2 * kChunk + kSpare);
    runs[2] = take(kSlicesInChunk);
    runs[4] = take(kSlicesInChunk);
    EXPECT_EQ(pool.allocate(kSlicesInChunk, true).first, nullptr);
  }
  if (kHeedsAdvice.holds()) { EXPECT_TRUE(has_small_pages(base(runs[2])) && has_small_pages(base(runs[4]))); }
  EXPECT_TRUE(is_zero(base(runs[2]), kChunk) && is_zero(base(runs[4]), kChunk));
  EXPECT_EQ(region_bytes(), kRegion - kChunk);
  EXPECT_TRUE(pool.is_valid());
  take(kSlicesInChunk);  // in another region
  runs.erase(runs.begin() + 1);
  for (SlicePool::Run& run : runs) pool.release(*run.first, kSlicesInChunk);
  take(1);
  purge();
  pool.unmap_closed();
  EXPECT_TRUE(pool.is_valid());
  EXPECT_EQ(*foreign, 7);
  os::unmap(foreign, os::page_size());
}

// Of the last chunk of a huge block, only the pages that it needs.
TEST_F(AddressLimit, HugeBlocksGetWhatIsLeft) {
  constexpr size_t kSize = 5 * kMiB / 2;
  hm_free(hm_malloc(kSize));
  char *first = static_cast<char*>(hm_malloc(kSize)), *second, *third, *refused, *grown;
  fill(first, kSize, 1);
  {
    MoreAddresses limit(2 * kSize - (2 * kChunk - kSize) + kSpare);  // the pages of two, with what is behind the first
    second = static_cast<char*>(hm_malloc(kSize));
    third = static_cast<char*>(hm_malloc(kSize));
    refused = static_cast<char*>(hm_malloc(kSize));
    hm_free(third);
    grown = static_cast<char*>(hm_realloc(second, kSize + kMiB / 2));
  }
  ASSERT_NE(second, nullptr);
  ASSERT_NE(third, nullptr);
  EXPECT_EQ(refused, nullptr);
  ASSERT_NE(grown, nullptr);
  EXPECT_TRUE(huge_is_valid());
  fill(grown, kSize + kMiB / 2, 2);
  EXPECT_TRUE(matches(first, kSize, 1));
  char* wide = static_cast<char*>(hm_realloc(first, 9 * kMiB));
  EXPECT_TRUE(matches(wide, kSize, 1));
  EXPECT_TRUE(is_zero(wide + align_up(kSize, os::page_size()), kMiB));
  hm_free(wide);
  hm_free(grown);
  EXPECT_EQ(huge_gauges().blocks + huge_gauges().active, 0u);
  hm_collect();
  EXPECT_EQ(huge_gauges().mapped, 0u);
}

TEST_F(AddressLimit, WhatIsBehindHugeBlocksGoesBeforeARefusal) {
  std::vector<char*> blocks;
  for (size_t size : {3 * kMiB / 2, 3 * kMiB, 4 * kMiB, 5 * kMiB + 1}) {
    blocks.push_back(static_cast<char*>(hm_malloc(size)));
    fill(blocks.back(), size, 3);
  }
  EXPECT_EQ(huge_gauges().mapped, 16 * kMiB);
  reclaim_before_refusal();
  EXPECT_EQ(huge_gauges().mapped, 27 * kMiB / 2 + os::page_size());
  EXPECT_TRUE(huge_is_valid());
  EXPECT_TRUE(matches(blocks[3], 5 * kMiB + 1, 3));
  EXPECT_EQ(hm_realloc(blocks[1], 3 * kMiB - 5000), blocks[1]) << "still fits";
  for (char* block : blocks) hm_free(block);
  hm_collect();
  EXPECT_EQ(huge_gauges().mapped, 0u);
}

// All that a phase has freed serves the next one, whatever the sizes.
TEST_F(AddressLimit, PhasesOfAnySizeGetAlmostAll) {
  if (kThreadSanitizer)
    GTEST_SKIP() << "ThreadSanitizer maps memory of its own for the states of so many blocks, and ends at the limit";
  constexpr size_t kMore = 64 * kMiB;
  options.retain_bytes = 128 * kKiB;
  hm_free(hm_malloc(1));
  size_t given[2][4];
  {
    MoreAddresses limit(kMore);
    for (size_t(&round)[4] : given)
      for (size_t i = 0; i < 4; ++i) {
        size_t size = std::array{size_t{64}, size_t{5000}, 100 * kKiB, 3 * kMiB}[i], n = 0;
        void* list = nullptr;
        while (void* block = hm_malloc(size)) {
          *static_cast<void**>(block) = list;
          list = block;
          ++n;
        }
        while (list != nullptr) hm_free(std::exchange(list, *static_cast<void**>(list)));
        round[i] = n * size;
      }
  }
  for (size_t(&round)[4] : given) {
    EXPECT_GE(round[0], kMore / 100 * 88);
    EXPECT_GE(round[1], kMore / 100 * 83);
    EXPECT_GE(round[2], kMore / 100 * 65) << "they take four slices each, and use 100 KB of 128";
    EXPECT_GE(round[3], kMore / 100 * 93);
  }
  EXPECT_TRUE(everything_is_valid());
}

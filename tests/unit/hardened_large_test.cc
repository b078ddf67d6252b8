// The hardened library's blocks above 32 KB: guards, canaries, and what becomes of them when they are freed.
#include "base/os_pages.h"
#include "base/system_call.h"
#include "hardened.h"
#include "large/extent_table.h"
#include "large/huge.h"
#include "pages/options.h"

using namespace hm;
using namespace hm::test;

namespace {

constexpr size_t kCleared = 64 * kKiB, kSealed = 300 * kKiB;

struct HardenedLarge : testing::Test {
  HardenedLarge() {
    options.thaw();
    options.decay_ms = 60'000;
  }
};

char* last_page_end(char* block, size_t size) {
  return reinterpret_cast<char*>(align_up(address_of(block) + size, os::page_size()));
}
char* first_page(char* block) { return reinterpret_cast<char*>(align_down(address_of(block), os::page_size())); }

}  // namespace

TEST_F(HardenedLarge, ABlockEndsWithItsLastPage) {
  for (size_t size : {size_t{32761}, size_t{32768}, size_t{40000}, size_t{65536}, kMiB, 5 * kMiB + 7}) {
    char* block = allocate(size);
    EXPECT_EQ(hm_usable_size(block), size);
    EXPECT_LT(last_page_end(block, size) - (block + size), 16);
    EXPECT_TRUE(is_zero(block, size));
    fill(block, size, 1);
    EXPECT_TRUE(matches(block, size, 1));
    EXPECT_EXIT(write_to(last_page_end(block, size), 0, 'x'), kFault, "");
    EXPECT_EXIT(write_to(first_page(block), -1, 'x'), kFault, "");
    hm_free(block);
  }
}

TEST_F(HardenedLarge, AlignmentsAreKept) {
  for (size_t alignment = 32; alignment <= 16 * kMiB; alignment *= 2)
    for (size_t size : {size_t{40000}, size_t{100}, kMiB + 1}) {
      auto* block = static_cast<char*>(hm_aligned_alloc(alignment, size));
      EXPECT_EQ(address_of(block) % alignment, 0u);
      EXPECT_EQ(hm_usable_size(block), size);
      fill(block, size, 2);
      EXPECT_TRUE(matches(block, size, 2));
      hm_free(block);
      EXPECT_EXIT(hm_free(block), kAborted, kDoubleFree);
    }
}

TEST_F(HardenedLarge, WhatIsLeftOfThePagesAreCanaries) {
  char* block = allocate(40001);
  ASSERT_GT(last_page_end(block, 40001), block + 40001);
  for (char value : {'\0', 'x'}) {
    EXPECT_EXIT((write_to(block, 40001, value), hm_free(block)), kAborted, kBehind);
    EXPECT_EXIT((write_to(block, last_page_end(block, 40001) - block - 1, value), hm_free(block)), kAborted, kBehind);
    EXPECT_EXIT((write_to(block, -1, value), hm_free(block)), kAborted, kInFront);
    EXPECT_EXIT((write_to(first_page(block), 0, value), hm_free(block)), kAborted, kInFront);
  }
  hm_free(block);
}

TEST_F(HardenedLarge, ASecondFreeIsFound) {
  for (size_t size : {kCleared, kSealed, 3 * kMiB}) {
    char* block = allocate(size);
    hm_free(block);
    EXPECT_EXIT(hm_free(block), kAborted, kDoubleFree);
    EXPECT_EXIT((age(size, 10), hm_free(block)), kAborted, kDoubleFree);
    EXPECT_EXIT((age(size, 200), hm_free(block)), kAborted, "hm_free");
    EXPECT_EXIT(std::ignore = hm_realloc(block, 10), kAborted, kDoubleFree);
    EXPECT_EXIT(free_twice_at_once(hm_malloc(size)), kAborted, kDoubleFree);
  }
}

// Both may have found it live: of two threads that free it at once one does.
TEST_F(HardenedLarge, OfTwoFreesOneTakesABlockBack) {
  Extent& extent = *huge_extent(hm_malloc(kCleared));
  EXPECT_TRUE(free_huge(extent));
  EXPECT_FALSE(free_huge(extent));
}

TEST_F(HardenedLarge, AnAddressInsideIsNoBlock) {
  char* block = allocate(3 * kMiB);
  for (size_t at : {size_t{16}, os::page_size(), kMiB}) EXPECT_EXIT(hm_free(block + at), kAborted, "hm_free");
  EXPECT_EXIT(hm_free(first_page(block) - os::page_size()), kAborted, "hm_free");
  hm_free(block);
}

TEST_F(HardenedLarge, WhatIsFreedIsClearedOrOutOfReach) {
  char *cleared = allocate(kCleared), *sealed = allocate(kSealed);
  memset(cleared, 1, kCleared);
  memset(sealed, 1, kSealed);
  hm_free(cleared);
  hm_free(sealed);
  EXPECT_TRUE(is_zero(cleared, kCleared));
  EXPECT_EXIT(write_to(sealed, 5, 'x'), kFault, "");
  EXPECT_EXIT(exit(const_cast<volatile char*>(sealed)[5]), kFault, "");
}

TEST_F(HardenedLarge, AWriteAfterTheFreeIsFound) {
  char* block = allocate(kCleared);
  hm_free(block);
  EXPECT_EXIT((write_to(block, 77, 'x'), age(kCleared, 100)), kAborted, kAfterFree) << "when it serves again";
  EXPECT_EXIT((write_to(block, 77, 'x'), hm_collect()), kAborted, kAfterFree) << "when it goes back to the system";
}

TEST_F(HardenedLarge, ABlockServesAgainAfterOthersWereFreed) {
  std::vector<char*> freed;
  size_t again = 0;
  for (size_t i = 0; i < 200; ++i) {
    char* block = allocate(kCleared);
    EXPECT_TRUE(is_zero(block, kCleared));
    auto before = std::find(freed.rbegin(), freed.rend(), block);
    if (before != freed.rend()) {
      ++again;
      EXPECT_GE(before - freed.rbegin(), 16);
    }
    memset(block, 1, kCleared);
    hm_free(block);
    freed.push_back(block);
  }
  EXPECT_GT(again, 150u) << "or each would be a mapping of its own";
}

TEST_F(HardenedLarge, WhatWaitsIsBounded) {
  std::vector<void*> blocks = allocate_many(200, 100 * kKiB);
  free_all(blocks);
  EXPECT_LE(huge_gauges().kept, 4 * kMiB);
  EXPECT_GT(huge_gauges().kept, kMiB);
  free_all(allocate_many(200, kSealed));
  size_t waiting = 0;
  extent_table.for_each([&](const Extent& extent) { waiting += extent.state() == ExtentState::kKept; });
  EXPECT_EQ(waiting, 64u);
  EXPECT_EQ(huge_gauges().kept, 0u) << "the cleared ones have waited longest";
  EXPECT_TRUE(huge_is_valid());
}

TEST_F(HardenedLarge, AllGoesBackOnRequestAndInTime) {
  void *one = hm_malloc(kCleared), *two = hm_malloc(kSealed);
  hm_free(one);
  EXPECT_EQ(huge_gauges().kept, kCleared);
  hm_collect();
  EXPECT_EQ(huge_gauges().kept, 0u);
  EXPECT_EQ(huge_extent(one), nullptr);
  hm_free(two);
  EXPECT_NE(huge_extent(two), nullptr);
  options.decay_ms = 2;
  usleep(5000);
  purge_huge_blocks(false);
  EXPECT_EQ(huge_extent(two), nullptr);
  EXPECT_EQ(huge_gauges().mapped + huge_gauges().active + huge_gauges().blocks, 0u);
}

TEST_F(HardenedLarge, BlocksLieAtRandomPlacesNotFarFromEachOther) {
  std::vector<void*> blocks = allocate_many(50, kSealed);
  std::vector<uintptr_t> places;
  for (void* block : blocks) places.push_back(address_of(block));
  EXPECT_FALSE(std::is_sorted(places.begin(), places.end()) || std::is_sorted(places.rbegin(), places.rend()));
  auto [low, high] = std::minmax_element(places.begin(), places.end());
  EXPECT_LT(*high - *low, 64 * kKiB * kMiB);
  EXPECT_GT(*high - *low, kKiB * kMiB);
  free_all(blocks);
}

TEST_F(HardenedLarge, AResizedBlockMovesWithItsBytes) {
  char* block = allocate(40'000);
  fill(block, 40'000, 4);
  auto* larger = static_cast<char*>(hm_realloc(block, 4 * kMiB));
  EXPECT_TRUE(matches(larger, 40'000, 4));
  EXPECT_TRUE(is_zero(larger + 40'000, 4 * kMiB - 40'000));
  EXPECT_EXIT(hm_free(block), kAborted, kDoubleFree);
  auto* smaller = static_cast<char*>(hm_realloc(larger, 100));
  EXPECT_TRUE(matches(smaller, 100, 4));
  hm_free(smaller);
}

TEST_F(HardenedLarge, AChildOfAForkGoesOn) {
  char* block = allocate(kSealed);
  fill(block, kSealed, 9);
  free_all(allocate_many(30, kCleared));
  EXPECT_TRUE(child_succeeds([=] {
    bool same = matches(block, kSealed, 9);
    hm_free(block);
    free_all(allocate_many(100, kCleared));
    return same && huge_is_valid() && huge_gauges().blocks == 0;
  }));
  hm_free(block);
}

TEST_F(HardenedLarge, ARequestThatCannotBeMetChangesNothing) {
  EXPECT_EQ(hm_malloc(size_t{1} << 50), nullptr);
  EXPECT_EQ(hm_malloc(SIZE_MAX / 2), nullptr);
  EXPECT_EQ(huge_gauges().active + huge_gauges().max_active, 0u);
}

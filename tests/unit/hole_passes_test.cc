// Pages between live blocks that go back to the system.
#include "upkeep/hole_passes.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/os_pages.h"
#include "core/superblock_pool.h"
#include "pages/footprint.h"
#include "pages/options.h"
#include "support.h"
#include "threads/registry.h"

using namespace hm;
using namespace hm::test;

namespace {

constexpr size_t kBytes = 24 * kMiB;
constexpr size_t kLargestSuperblock = 4 * kSlice;

// Blocks of one size, of which one in so many, drawn by lot, outlives the others.
struct Survivors {
  explicit Survivors(size_t block_size, size_t one_in = 20) : size(block_size) {
    options.huge_pages_after = SIZE_MAX / 2;
    options.decay_ms = 60'000;  // however slow the machine is, it does not pause
    auto all = allocate_many(kBytes / size, size);
    for (void* block : all) fill(block, size, 1);
    std::shuffle(all.begin(), all.end(), std::mt19937(kSeed));
    auto end = all.begin() + static_cast<ptrdiff_t>(all.size() / one_in);
    blocks.assign(all.begin(), end);
    free_all({end, all.end()});
  }
  ~Survivors() {
    expect_unchanged();
    free_all(blocks);
  }
  void expect_unchanged() const {
    for (void* block : blocks) ASSERT_TRUE(matches(block, size, 1));
  }
  // Of the slices that they lie in: what is resident, and what their pages take.
  std::pair<size_t, size_t> resident_and_needed() const {
    std::set<uintptr_t> slices, pages;
    for (void* block : blocks) {
      slices.insert(align_down(address_of(block), std::max(kSlice, os::page_size())));
      for (uintptr_t at = align_down(address_of(block), os::page_size()); at < address_of(block) + size;
           at += os::page_size())
        pages.insert(at);
    }
    size_t found = 0;
    for (uintptr_t slice : slices) found += resident(reinterpret_cast<char*>(slice), std::max(kSlice, os::page_size()));
    return {found, pages.size() * os::page_size()};
  }
  size_t holes() const {  // bytes
    auto [found, needed] = resident_and_needed();
    return found - needed;
  }
  size_t size;
  std::vector<void*> blocks;
};

// A page of 64 KB is two superblocks of small blocks: these have no holes there.
struct Holes : public testing::Test {
  void SetUp() override {
    if (os::page_size() > kSlice) GTEST_SKIP() << "no page of this system lies in a superblock";
  }
};

struct HolesOfSize : testing::TestWithParam<size_t> {};

}  // namespace

TEST_P(HolesOfSize, GoBackWhenAsked) {
  Survivors survivors(GetParam());
  hm_collect();
  auto [resident, needed] = survivors.resident_and_needed();
  EXPECT_LE(resident, needed + 2 * kLargestSuperblock);
  survivors.expect_unchanged();
  EXPECT_TRUE(everything_is_valid());
}

INSTANTIATE_TEST_SUITE_P(Sizes, HolesOfSize,
                         testing::Values(16, 48, 100, 512, 1000, 2000, 3000, 4096, 5000, 10000, 20000, 32768),
                         testing::PrintToStringParamName());

TEST_F(Holes, AHoleGoesBackOnce) {
  Survivors survivors(1000);
  hm_collect();
  uint64_t before = os::calls();
  hole_passes.whole();
  EXPECT_EQ(os::calls(), before);
}

TEST_F(Holes, BlocksAreTakenFromHolesAgain) {
  Survivors survivors(1000);
  size_t used = slice_pool.used();
  hm_collect();
  hm_collect();
  uint64_t refilled = footprint.refilled();
  auto more = allocate_many(kBytes / 1000 / 2, 1000);
  for (void* block : more) fill(block, 1000, 2);
  EXPECT_LE(slice_pool.used(), used);
  EXPECT_GT(footprint.refilled(), refilled + kBytes / 8);
  for (void* block : more) EXPECT_TRUE(matches(block, 1000, 2));
  free_all(more);
  uint64_t purged = footprint.purged();
  hm_collect();
  EXPECT_GT(footprint.purged(), purged + kBytes / 8) << "what was filled may be a hole again";
}

TEST_F(Holes, NothingOfACurrentSuperblockGoes) {
  ClassIndex c = class_of(100);
  Superblock*& current = heap_or_attach()->classes[index_of(c)].current;
  while (current == nullptr) ASSERT_NE(hm_malloc(100), nullptr);
  memset(current->start + current->bytes() / 2, 1, current->bytes() / 2);  // FREE, and resident
  size_t before = resident(current->start, current->bytes());
  hole_passes.whole();
  EXPECT_EQ(resident(current->start, current->bytes()), before);
  Superblock* held = std::exchange(current, nullptr);
  superblock_pool.push(*held);
  hole_passes.whole();
  EXPECT_LT(resident(held->start, held->bytes()), before) << "in the pool it does";
}

TEST_F(Holes, HugePagesAreGivenUpForThem) {
  options.huge_pages_after = 0;
  Superblock& sb = fresh_superblock(class_of(1000));
  Chunk& chunk = Chunk::of(sb);
  chunk.huge = true;
  sb.states[0].mark_taken();
  superblock_pool.push(sb);
  hole_passes.whole();
  EXPECT_FALSE(chunk.huge) << "or the system would fill the holes again";
  EXPECT_EQ(superblock_pool.queue(0, class_of(1000)).pop(), &sb);
  drop(sb);
  EXPECT_TRUE(slice_pool.is_valid());
}

// A locked page, say.  The superblock is left alone until it is swept again; the others are not.
TEST_F(Holes, WhatTheSystemRefusesIsNotTriedAgain) {
  Survivors survivors(1000);
  std::set<uintptr_t> slices;
  for (void* block : survivors.blocks) slices.insert(align_down(address_of(block), kSlice));
  auto* locked = reinterpret_cast<char*>(*slices.begin());
  // By the number, for sanitizers make nothing of mlock.
  if (syscall(SYS_mlock, locked, kSlice) != 0) GTEST_SKIP() << "no memory may be locked";
  hm_collect();
  uint64_t before = os::calls();
  hole_passes.whole();
  EXPECT_EQ(os::calls(), before);
  EXPECT_EQ(os::resident(locked, kSlice), kSlice);
  auto [resident, needed] = survivors.resident_and_needed();
  EXPECT_LE(resident, needed + 2 * kLargestSuperblock);
  syscall(SYS_munlock, locked, kSlice);
}

// Pauses of a millisecond allow little each.
TEST_F(Holes, AShortPassEndsAndTheNextGoesOn) {
  Survivors survivors(1000);
  size_t half = survivors.holes() / 2;
  uint64_t start = footprint.purged();
  hole_passes.after_pause(1);
  uint64_t first = footprint.purged() - start;
  EXPECT_LE(first, PausePasses::kWorkPerMs * kLargestSuperblock + slice_pool.used() * kSlice / 8);
  for (int i = 0; i < 20'000 && footprint.purged() - start < half; ++i) {
    uint64_t before = footprint.purged();
    hole_passes.after_pause(1);
    if (footprint.purged() == before) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // it may be resting
  }
  EXPECT_GE(footprint.purged() - start, half);
}

// However slow the machine is, the calls after one of the pauses are the first.
TEST_F(Holes, TheFirstCallsAfterAPauseGiveBack) {
  Survivors survivors(1000);
  options.decay_ms = 100;
  size_t half = survivors.holes() / 2;
  uint64_t start = footprint.purged();
  for (int i = 0; i < 100 && footprint.purged() - start < half; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    free_all(allocate_many(1000, 100 + static_cast<size_t>(i) * 16));
  }
  EXPECT_GE(footprint.purged() - start, half);
}

TEST_F(Holes, OnesOfOtherHeapsAreFound) {
  std::vector<void*> rest;
  size_t purged = 0;
  on_thread([&] {
    Survivors survivors(1000);
    on_thread([&] {
      uint64_t before = footprint.purged();
      hole_passes.whole();
      purged = footprint.purged() - before;
    });
  });
  EXPECT_GT(purged, kBytes / 4);
}

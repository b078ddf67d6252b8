#include "pages/memory_limit.h"

#include <sys/eventfd.h>

#include <filesystem>
#include <fstream>

#include "base/control_group.h"
#include "large/huge.h"
#include "large/huge_store.h"
#include "support.h"

using namespace hm;
using namespace hm::test;

namespace {

constexpr size_t kLimit = 32 * kMiB, kReserve = kMiB;

struct UnderLimit : NothingIsLost {
  UnderLimit() { options.limit = kLimit, options.decay_ms = 60'000; }
  ~UnderLimit() override { options.limit = 0; }
  static std::vector<void*> take_all(size_t size) {
    std::vector<void*> blocks;
    while (void* block = hm_malloc(size)) blocks.push_back(block);
    return blocks;
  }
  // In blocks of four slices each.
  static std::vector<void*> take(size_t bytes) { return allocate_many(bytes / (128 * kKiB), 100 * kKiB); }
};

// A directory of files that say what those of the system would.
struct ControlGroups : testing::Test {
  std::string root = testing::TempDir() + "hm_groups_" + std::to_string(getpid()), membership = root + "/membership";
  ControlGroups() { std::filesystem::create_directories(root); }
  ~ControlGroups() override { std::filesystem::remove_all(root); }
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root + path).parent_path());
    std::ofstream(root + path) << text;
  }
  size_t limit() const { return control_group_limit(membership.c_str(), root.c_str()); }
};

}  // namespace

TEST(MemoryLimit, HasThresholds) {
  constexpr MemoryLimit none(0), small(8 * kMiB), large(4096 * kMiB);
  EXPECT_TRUE(none.admits(SIZE_MAX / 2, SIZE_MAX / 2, false));
  EXPECT_EQ(small.soft(), 7 * kMiB);
  EXPECT_EQ(small.reserve(), kMiB);
  EXPECT_EQ(large.reserve(), 32 * kMiB);
  EXPECT_TRUE(small.admits(6 * kMiB, kMiB, false));
  EXPECT_FALSE(small.admits(6 * kMiB, kMiB + 1, false)) << "the last megabyte is the reserve";
  EXPECT_TRUE(small.admits(6 * kMiB, 2 * kMiB, true));
  EXPECT_FALSE(small.admits(6 * kMiB, 2 * kMiB + 1, true));
  EXPECT_FALSE(small.admits(9 * kMiB, 1, true)) << "it was exceeded before it was set";
  EXPECT_FALSE(small.admits(kMiB, SIZE_MAX, true));
}

TEST_F(ControlGroups, NoneLimitsWhereNoneIsFound) {
  EXPECT_EQ(limit(), 0u);
  write("/membership", "");
  EXPECT_EQ(limit(), 0u);
  write("/membership", "0::/a\n4:memory:/b\nnonsense\n:\n::\n");
  EXPECT_EQ(limit(), 0u);
  write("/a/memory.max", "max\n");
  write("/memory/b/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(limit(), 0u);
}

TEST_F(ControlGroups, TheLeastOfAllAboveCounts) {
  write("/membership", "0::/a/b/c");
  write("/a/b/c/memory.max", "3000000\n");
  EXPECT_EQ(limit(), 3000000u);
  write("/a/memory.max", "2000000\n");
  write("/a/b/memory.max", "max\n");
  EXPECT_EQ(limit(), 2000000u);
  write("/memory.max", "1000000\n");
  EXPECT_EQ(limit(), 1000000u);
}

TEST_F(ControlGroups, Version1NamesTheController) {
  write("/membership", "9:name=systemd:/x\n4:cpu,memory:/a:b\n3:memory2:/y\n0::/\n");
  write("/memory/x/memory.limit_in_bytes", "1\n");
  write("/memory/y/memory.limit_in_bytes", "1\n");
  write("/memory/a:b/memory.limit_in_bytes", "5000000\n");
  EXPECT_EQ(limit(), 5000000u);
}

TEST_F(ControlGroups, AContainerFindsItsOwnRoot) {
  write("/membership", "4:memory:/docker/" + std::string(64, 'f') + "\n");
  write("/memory/memory.limit_in_bytes", "7000000\n");
  EXPECT_EQ(limit(), 7000000u);
  write("/membership", "4:memory:/" + std::string(2000, 'f') + "\n");
  EXPECT_EQ(limit(), 7000000u) << "a path that is too long";
}

TEST_F(UnderLimit, RequestsAreRefusedAndServedAgain) {
  for (size_t size : {size_t{64}, size_t{5000}, 100 * kKiB, 3 * kMiB, size_t{64}}) {
    std::vector<void*> blocks = take_all(size);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_LE(footprint.resident(), kLimit) << size;
    EXPECT_GE(footprint.resident() + std::max(size, kSlice * 4) + kReserve + kChunk, kLimit) << size;
    EXPECT_EQ(hm_malloc(2 * size + kMiB), nullptr);
    free_all(blocks);
    EXPECT_TRUE(slice_pool.is_valid());
    EXPECT_TRUE(huge_is_valid());
  }
}

TEST_F(UnderLimit, TheReserveIsForSmallBlocks) {
  std::vector<void*> large = take_all(40'000);
  EXPECT_LE(footprint.resident(), kLimit - kReserve);
  EXPECT_EQ(hm_malloc(2 * kMiB), nullptr);
  std::vector<void*> small = take_all(200);
  EXPECT_GT(small.size() * 200, kReserve / 2);
  EXPECT_LE(footprint.resident(), kLimit);
  free_all(small);
  free_all(large);
}

TEST_F(UnderLimit, AHugeBlockGrowsWithinIt) {
  char* block = static_cast<char*>(hm_malloc(10 * kMiB));
  fill(block, 10 * kMiB, 1);
  EXPECT_EQ(hm_realloc(block, 33 * kMiB), nullptr);
  block = static_cast<char*>(hm_realloc(block, 30 * kMiB));
  ASSERT_NE(block, nullptr) << "although two of them would be too much";
  EXPECT_TRUE(matches(block, 10 * kMiB, 1));
  EXPECT_EQ(huge_gauges().active, footprint.huge()) << "nothing stays promised";
  hm_free(block);
}

TEST_F(UnderLimit, AHugeBlockGrowsIntoWhatWasFreeElsewhere) {
  options.retain_bytes = kLimit;
  char* block = static_cast<char*>(hm_malloc(10 * kMiB));
  fill(block, 10 * kMiB, 1);
  free_all(take(6 * kMiB));
  EXPECT_GT(footprint.resident(), 15 * kMiB) << "it is kept";
  block = static_cast<char*>(hm_realloc(block, 26 * kMiB));
  ASSERT_NE(block, nullptr) << "all that is free went back for a second block, for which there is no room";
  EXPECT_TRUE(matches(block, 10 * kMiB, 1));
  hm_free(block);
}

// The extent of a small block with a large alignment is 2 MB, of which the block counts one page.
TEST_F(UnderLimit, AnExtentIsKeptOnlyIfAllOfItFits) {
  auto take_aligned = [] {
    std::vector<void*> blocks(8);
    for (void*& block : blocks) block = hm_aligned_alloc(kChunk, 4 * kKiB);
    return blocks;
  };
  for (int i = 0; i < 20; ++i) free_all(take_aligned());
  std::vector<void*> most = take(kLimit / 8 * 6);
  ASSERT_GE(huge_store.retention.allowance(), 6 * kMiB) << "the program asks again for what it frees";
  EXPECT_TRUE(huge_store.may_keep(kChunk));
  EXPECT_FALSE(huge_store.may_keep(6 * kMiB));
  free_all(most);
}

TEST_F(UnderLimit, ItIsToldOfAndForgotten) {
  int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  auto told = [&] {
    uint64_t count;
    return read(fd, &count, sizeof count) == sizeof count;
  };
  hm_pressure_notify(fd);
  std::vector<void*> most = take(kLimit / 4 * 3);
  EXPECT_EQ(hm_pressure(), 0);
  EXPECT_FALSE(told());
  std::vector<void*> more = take(kLimit / 6);
  EXPECT_EQ(hm_pressure(), 1);
  EXPECT_TRUE(told());
  EXPECT_EQ(hm_malloc(kLimit), nullptr);
  EXPECT_EQ(hm_pressure(), 2);
  EXPECT_TRUE(told());
  EXPECT_TRUE(child_succeeds([&] { return hm_malloc(kLimit) == nullptr && hm_pressure() == 2 && !told(); }));
  free_all(more);
  EXPECT_EQ(hm_pressure(), 0);
  free_all(most);
  hm_pressure_notify(-1);
  close(fd);
}

// Once, and each time that memory has grown by another step; not at each look.
TEST_F(UnderLimit, AboveTheSoftLimitAllThatIsFreeGoesBack) {
  options.retain_bytes = kLimit;
  std::vector<void*> most = take(kLimit / 16 * 13), freed = take(kLimit / 32);
  free_all(freed);
  EXPECT_GT(slice_pool.gauges().dirty_slices, 0u);
  std::vector<void*> small = allocate_many(kLimit / 8 / 1024, 1024);
  EXPECT_LE(footprint.resident(), most.size() * 128 * kKiB + small.size() * 1024 * 9 / 8 + kMiB);
  free_all(most);
  free_all(small);
}

// Slices that wait to be used again serve no huge block, and who asks for one gives so many back.
TEST_F(UnderLimit, WhatNobodyUsesAgainGoesBackToo) {
  options.retain_bytes = kLimit;
  std::vector<void*> most = take(20 * kMiB);
  free_all(take(4 * kMiB));
  EXPECT_GT(footprint.resident(), 23 * kMiB) << "it is kept";
  void* huge = hm_malloc(5 * kMiB);
  std::vector<void*> small = allocate_many(20'000, 16);
  EXPECT_LT(footprint.resident(), 27 * kMiB);
  hm_free(huge);
  free_all(most);
  free_all(small);
}

// A kept huge block serves no smaller one, and nobody is refused one here; so only a look gives it back.
TEST_F(UnderLimit, AKeptHugeBlockGoesBackAboveTheSoftLimit) {
  keep_written(4 * kMiB);
  std::vector<void*> most = take(23 * kMiB);
  EXPECT_EQ(huge_gauges().kept, 4 * kMiB) << "a megabyte below it";
  std::vector<void*> more = take(3 * kMiB);
  EXPECT_EQ(huge_gauges().kept, 0u);
  free_all(most);
  free_all(more);
}

TEST_F(UnderLimit, AChildForgetsWhatWasPromisedToOthers) {
  size_t before = footprint.resident();
  ASSERT_TRUE(huge_store.promise(20 * kMiB));
  EXPECT_EQ(footprint.resident(), before + 20 * kMiB);
  EXPECT_TRUE(child_succeeds([=] { return hm_malloc(1) != nullptr && footprint.resident() < before + kMiB; }));
  huge_store.break_promise(20 * kMiB);
  EXPECT_EQ(footprint.resident(), before);
}

#include "baselines/common/regions.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "base/os_pages.h"

using namespace hm;

namespace {

bool is_zero(const void* memory, size_t size) {
  const auto* bytes = static_cast<const char*>(memory);
  return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

}  // namespace

TEST(Regions, AreAlignedToTheirSizeZeroedAndApart) {
  for (size_t bytes : {4 * kKiB, 8 * kKiB, 64 * kKiB, kMiB, kChunk, 2 * kChunk, 8 * kChunk}) {
    Regions regions(bytes);
    EXPECT_EQ(regions.bytes(), bytes);
    std::set<void*> seen;
    for (int i = 0; i < (bytes < kMiB ? 600 : 5); ++i) {
      void* region = regions.take();
      ASSERT_NE(region, nullptr);
      ASSERT_EQ(address_of(region) % bytes, 0u);
      ASSERT_TRUE(seen.insert(region).second);
      ASSERT_TRUE(is_zero(region, bytes));
      memset(region, 1, bytes < kMiB ? bytes : 100);
    }
    EXPECT_EQ(regions.taken(), seen.size());
  }
}

TEST(Regions, AreKnownToTheAddressMapAllOver) {
  Regions small(8 * kKiB), wide(2 * kChunk);
  auto* region = static_cast<char*>(small.take());
  EXPECT_EQ(AddressMap::kind(address_of(region)), ChunkKind::kRegions);
  EXPECT_EQ(AddressMap::kind(address_of(region) + 8 * kKiB - 1), ChunkKind::kRegions);
  auto* large = static_cast<char*>(wide.take());
  EXPECT_EQ(AddressMap::kind(address_of(large)), ChunkKind::kWideRegions);
  EXPECT_EQ(AddressMap::kind(address_of(large) + kChunk), ChunkKind::kWideRegions);
  EXPECT_EQ(AddressMap::kind(address_of(large) + 2 * kChunk - 1), ChunkKind::kWideRegions);
}

TEST(Regions, AnAddressLeadsToItsRegion) {
  Regions regions(64 * kKiB);
  auto* region = static_cast<char*>(regions.take());
  for (size_t offset : {size_t{0}, size_t{1}, size_t{40000}, 64 * kKiB - 1})
    EXPECT_EQ(Regions::of<char>(region + offset, 64 * kKiB), region);
  EXPECT_NE(Regions::of<char>(region + 64 * kKiB, 64 * kKiB), region);
}

TEST(Regions, ShareAMappingOfTwoMegabytes) {
  Regions regions(64 * kKiB);
  regions.take();
  uint64_t calls = os::calls();
  for (size_t i = 1; i < kChunk / (64 * kKiB); ++i) regions.take();
  EXPECT_EQ(os::calls(), calls);
  regions.take();
  EXPECT_GT(os::calls(), calls);
}

TEST(Regions, ThreadsNeverGetTheSame) {
  Regions regions(16 * kKiB);
  std::vector<std::vector<void*>> taken(4);
  std::vector<std::thread> threads;
  for (auto& mine : taken)
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        mine.push_back(regions.take());
        *static_cast<int*>(mine.back()) = i;
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::set<void*> all;
  for (auto& mine : taken)
    for (int i = 0; i < 500; ++i) {
      EXPECT_EQ(*static_cast<int*>(mine[static_cast<size_t>(i)]), i);
      all.insert(mine[static_cast<size_t>(i)]);
    }
  EXPECT_EQ(all.size(), 2000u);
  EXPECT_EQ(regions.taken(), 2000u);
}

#include "baselines/common/regions.h"

#include <set>

#include "base/os_pages.h"
#include "contract_support.h"

using namespace hm;

namespace {

ChunkKind kind_at(const char* address) { return AddressMap::kind(address_of(address)); }

}  // namespace

TEST(Regions, AreAlignedToTheirSizeZeroedAndApart) {
  for (size_t bytes : {4 * kKiB, 8 * kKiB, 64 * kKiB, kMiB, kChunk, 2 * kChunk, 8 * kChunk}) {
    Regions regions(bytes);
    EXPECT_EQ(regions.bytes(), bytes);
    std::set<void*> seen;
    for (int i = 0; i < (bytes < kMiB ? 600 : 5); ++i) {
      auto* region = static_cast<char*>(regions.take());
      ASSERT_NE(region, nullptr);
      ASSERT_EQ(address_of(region) % bytes, 0u);
      ASSERT_TRUE(seen.insert(region).second);
      ASSERT_TRUE(contract::holds_only(region, bytes, 0));
      memset(region, 1, bytes < kMiB ? bytes : 100);
    }
    EXPECT_EQ(regions.taken(), seen.size());
  }
}

TEST(Regions, AreKnownToTheAddressMapAllOver) {
  Regions small(8 * kKiB), wide(2 * kChunk);
  auto* region = static_cast<char*>(small.take());
  for (size_t offset : {size_t{0}, 8 * kKiB - 1}) {
    EXPECT_EQ(kind_at(region + offset), ChunkKind::kRegions);
    EXPECT_EQ(Regions::of<char>(region + offset, 8 * kKiB), region);
  }
  region = static_cast<char*>(wide.take());
  for (size_t offset : {size_t{0}, kChunk, 2 * kChunk - 1}) {
    EXPECT_EQ(kind_at(region + offset), ChunkKind::kWideRegions);
    EXPECT_EQ(Regions::of<char>(region + offset, 2 * kChunk), region);
  }
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
  std::array<std::array<void*, 500>, 4> taken;
  std::vector<std::thread> threads;
  for (auto& mine : taken)
    threads.emplace_back([&] {
      for (void*& region : mine) region = regions.take();
    });
  for (std::thread& thread : threads) thread.join();
  std::set<void*> all;
  for (auto& mine : taken) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), 2000u);
  EXPECT_EQ(regions.taken(), 2000u);
}

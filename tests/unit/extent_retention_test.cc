#include "large/extent_retention.h"

#include "support.h"

using namespace hm;

TEST(ExtentRetention, GrowsWithEachTimeInARow) {
  constexpr size_t kMax = 100 * kMiB;
  ExtentRetention retention;
  auto miss = [&](size_t bytes) {
    retention.on_unmap(bytes);
    retention.on_map(bytes, kMax);
    return retention.allowance() / kMiB;
  };
  retention.on_map(8 * kMiB, kMax);
  EXPECT_EQ(retention.allowance(), 0u) << "nothing had gone back";
  retention.on_unmap(4 * kMiB);
  retention.on_map(8 * kMiB, kMax);
  EXPECT_EQ(retention.allowance(), 0u) << "what had gone back was too short";
  EXPECT_EQ(miss(8 * kMiB), 8u);
  EXPECT_EQ(miss(8 * kMiB), 8u + 2 * 8);
  retention.on_map(8 * kMiB, kMax);
  EXPECT_EQ(retention.allowance(), 24 * kMiB) << "that had been asked for already";
  retention.on_expire(4 * kMiB);
  EXPECT_EQ(miss(8 * kMiB), 20u + 8);
  EXPECT_EQ(miss(50 * kMiB), 100u) << "no more than the most";
}

TEST(ExtentRetention, APauseForgetsEverything) {
  ExtentRetention retention;
  retention.observe(1000, 500);
  retention.on_unmap(8 * kMiB);
  retention.on_map(8 * kMiB, 100 * kMiB);
  retention.observe(1500, 500);
  EXPECT_EQ(retention.allowance(), 8 * kMiB);
  retention.on_unmap(8 * kMiB);
  retention.observe(2001, 500);
  EXPECT_EQ(retention.allowance(), 0u);
  retention.on_map(8 * kMiB, 100 * kMiB);
  EXPECT_EQ(retention.allowance(), 0u) << "what went back before the pause";
}

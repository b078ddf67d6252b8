#include "large/extent_retention.h"

#include "support.h"

using namespace hm;

TEST(Regret, GrowsWithEachTimeInARow) {
  constexpr size_t kMost = 100 * kMiB;
  Regret regret;
  auto miss = [&](size_t bytes) {
    regret.gave_back(bytes);
    regret.mapped(bytes, kMost);
    return regret.allowance() / kMiB;
  };
  regret.mapped(8 * kMiB, kMost);
  EXPECT_EQ(regret.allowance(), 0u) << "nothing had gone back";
  regret.gave_back(4 * kMiB);
  regret.mapped(8 * kMiB, kMost);
  EXPECT_EQ(regret.allowance(), 0u) << "what had gone back was too short";
  EXPECT_EQ(miss(8 * kMiB), 8u);
  EXPECT_EQ(miss(8 * kMiB), 8u + 2 * 8);
  regret.mapped(8 * kMiB, kMost);
  EXPECT_EQ(regret.allowance(), 24 * kMiB) << "that had been asked for already";
  regret.kept_in_vain(4 * kMiB);
  EXPECT_EQ(miss(8 * kMiB), 20u + 8);
  EXPECT_EQ(miss(50 * kMiB), 100u) << "no more than the most";
}

TEST(Regret, APauseForgetsEverything) {
  Regret regret;
  regret.observe(1000, 500);
  regret.gave_back(8 * kMiB);
  regret.mapped(8 * kMiB, 100 * kMiB);
  regret.observe(1500, 500);
  EXPECT_EQ(regret.allowance(), 8 * kMiB);
  regret.gave_back(8 * kMiB);
  regret.observe(2001, 500);
  EXPECT_EQ(regret.allowance(), 0u);
  regret.mapped(8 * kMiB, 100 * kMiB);
  EXPECT_EQ(regret.allowance(), 0u) << "what went back before the pause";
}

#include "hmalloc/regret.h"

#include "support.h"

using namespace hm;

TEST(Regret, GrowsWithEachTimeInARow) {
  constexpr size_t kMost = 100 * kMiB;
  constexpr uint64_t kNow = 10'000, kDecay = 500;
  Regret regret;
  auto miss = [&](size_t bytes) {
    regret.gave_back(bytes, kNow, kDecay);
    regret.mapped(bytes, kMost, kNow, kDecay);
    return regret.allowance() / kMiB;
  };
  regret.mapped(8 * kMiB, kMost, kNow, kDecay);
  EXPECT_EQ(regret.allowance(), 0u) << "nothing had gone back";
  regret.gave_back(4 * kMiB, kNow, kDecay);
  regret.mapped(8 * kMiB, kMost, kNow, kDecay);
  EXPECT_EQ(regret.allowance(), 0u) << "what had gone back was too short";
  EXPECT_EQ(miss(8 * kMiB), 8u);
  EXPECT_EQ(miss(8 * kMiB), 8u + 2 * 8);
  regret.mapped(8 * kMiB, kMost, kNow, kDecay);
  EXPECT_EQ(regret.allowance(), 24 * kMiB) << "that had been asked for already";
  regret.kept_in_vain(4 * kMiB);
  EXPECT_EQ(miss(8 * kMiB), 20u + 8);
  EXPECT_EQ(miss(50 * kMiB), 100u) << "no more than the most";
}

TEST(Regret, IsForgottenInTheDecayTime) {
  Regret regret;
  regret.gave_back(8 * kMiB, 1000, 500);
  regret.mapped(8 * kMiB, 100 * kMiB, 1501, 500);
  EXPECT_EQ(regret.allowance(), 0u) << "nobody would have kept it for so long";
  regret.gave_back(8 * kMiB, 1501, 500);
  regret.mapped(8 * kMiB, 100 * kMiB, 2001, 500);
  EXPECT_EQ(regret.allowance(), 8 * kMiB);
}

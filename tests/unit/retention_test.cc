#include "pages/retention.h"

#include "support.h"

using namespace hm;

namespace {
constexpr uint64_t kDecay = 500;
}

TEST(Retention, NothingStaysUntilItIsAskedForAgain) {
  Retention retention;
  EXPECT_EQ(retention.allowance(1000, kDecay), 0u);
  retention.on_demand(kMiB, 1000, kDecay);
  EXPECT_EQ(retention.allowance(1000, kDecay), 0u) << "nothing had gone back";
  retention.on_purge(3 * kMiB, 1000, kDecay);
  EXPECT_TRUE(retention.has_given_back());
  EXPECT_EQ(retention.allowance(1000, kDecay), 0u);
  retention.on_demand(kMiB, 1100, kDecay);
  retention.on_demand(kMiB, 1100, kDecay);
  EXPECT_EQ(retention.allowance(1100, kDecay), 2 * kMiB);
  retention.on_demand(5 * kMiB, 1100, kDecay);
  EXPECT_EQ(retention.allowance(1100, kDecay), 3 * kMiB) << "no more than had gone back";
}

TEST(Retention, WhatIsAskedForLaterWasNotMissed) {
  Retention retention;
  retention.on_purge(kMiB, 1000, kDecay);
  retention.on_demand(kMiB, 1501, kDecay);
  EXPECT_EQ(retention.allowance(1501, kDecay), 0u);
}

TEST(Retention, APauseEndsIt) {
  Retention retention;
  retention.on_purge(kMiB, 1000, kDecay);
  retention.on_demand(kMiB, 1000, kDecay);
  EXPECT_EQ(retention.allowance(1500, kDecay), kMiB);
  EXPECT_EQ(retention.allowance(1501, kDecay), 0u);
  retention.on_reuse(1400);
  EXPECT_EQ(retention.allowance(1900, kDecay), kMiB) << "it is being used";
  EXPECT_EQ(retention.allowance(1901, kDecay), 0u);
  retention.on_purge(kMiB, 3000, kDecay);
  retention.on_demand(kMiB, 3000, kDecay);
  EXPECT_EQ(retention.allowance(3000, kDecay), kMiB) << "what was before the pause does not count";
}

TEST(Retention, WhatIsKeptInVainShrinksIt) {
  Retention retention;
  retention.on_purge(3 * kMiB, 1000, kDecay);
  retention.on_demand(3 * kMiB, 1000, kDecay);
  retention.on_expire(2 * kMiB);
  EXPECT_EQ(retention.allowance(1000, kDecay), kMiB);
  retention.on_expire(2 * kMiB);
  EXPECT_EQ(retention.allowance(1000, kDecay), 0u);
}

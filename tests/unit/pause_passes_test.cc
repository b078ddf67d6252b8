#include "upkeep/pause_passes.h"

#include <gtest/gtest.h>

using namespace hm;

namespace {

constexpr size_t kMuch = 100 * kMiB;

// As after a first pass from 1000 to 1050 ms that looked at much and gave back so much.
PausePasses after_a_pass(size_t given_back) {
  PausePasses pauses;
  EXPECT_GT(pauses.work_after(500, 1000, 0), 0u);
  pauses.on_pass(kMuch, given_back, 1000, 1050, 0);
  return pauses;
}

}  // namespace

TEST(PausePasses, TheWorkIsAShareOfThePause) {
  PausePasses pauses;
  size_t work = pauses.work_after(500, 1000, 0);
  EXPECT_EQ(work, 500 * PausePasses::kWorkPerMs);
  EXPECT_EQ(pauses.work_after(1000, 1000, 0), 2 * work);
}

TEST(PausePasses, NoPauseIsLongerThanTheLongest) {
  PausePasses pauses;
  EXPECT_EQ(pauses.work_after(1'000'000'000, 1000, 0), PausePasses::kLongestPause * PausePasses::kWorkPerMs);
}

TEST(PausePasses, OneThatPaidIsFollowedByTheNext) { EXPECT_GT(after_a_pass(kMuch / 2).work_after(500, 1100, 0), 0u); }

TEST(PausePasses, OneInVainIsFollowedByARest) {
  PausePasses pauses = after_a_pass(kMuch / 100);
  uint64_t end = 1050 + 50 * PausePasses::kRest;
  EXPECT_EQ(pauses.work_after(500, end - 1, 0), 0u);
  EXPECT_GT(pauses.work_after(500, end, 0), 0u);
}

TEST(PausePasses, OneWhoseHolesWereFilledIsFollowedByARest) {
  PausePasses pauses = after_a_pass(kMuch / 2);
  uint64_t end = 1050 + 50 * PausePasses::kRest;
  EXPECT_EQ(pauses.work_after(500, end - 1, kMuch / 4), 0u);
  EXPECT_EQ(pauses.work_after(500, end - 1, kMuch / 4), 0u) << "and not only once";
  EXPECT_GT(pauses.work_after(500, end, kMuch / 4), 0u);
}

TEST(PausePasses, AFewHolesMayBeFilled) { EXPECT_GT(after_a_pass(kMuch / 2).work_after(500, 1100, kMuch / 4 - 1), 0u); }

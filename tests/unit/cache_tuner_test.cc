#include "core/cache_tuner.h"

#include "support.h"

using namespace hm;

namespace {

const ClassIndex kSmall = class_of(64), kWide = class_of(4096);

// In use, of a class.
struct Tuner : CacheTuner {
  ClassIndex c;
  explicit Tuner(ClassIndex its = kSmall) : c(its) { set_capacity(first_capacity(index_of(c))); }
  size_t after_batch(size_t blocks) {
    on_refill(blocks);
    return on_overflow_after_refills(c);
  }
};

}  // namespace

TEST(CacheTuner, OneBatchMayBeChance) {
  Tuner tuner;
  size_t batch = tuner.capacity() + 1;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(tuner.after_batch(batch), tuner.capacity()) << i;
  EXPECT_EQ(tuner.after_batch(batch), batch + batch / 8) << "the sixth in a row";
}

TEST(CacheTuner, ASmallerBatchBeginsAnew) {
  Tuner tuner;
  size_t now = tuner.capacity();
  for (int i = 0; i < 15; ++i) EXPECT_EQ(tuner.after_batch(i % 5 == 4 ? now : now + 1), now) << i;
}

TEST(CacheTuner, ALongBatchOrOneOfLargeBlocksGrowsAtOnce) {
  Tuner small, wide(kWide);
  EXPECT_EQ(small.after_batch(256), 256u + 32);
  size_t batch = wide.capacity() + 1;
  EXPECT_EQ(wide.after_batch(batch), batch + batch / 8);
}

TEST(CacheTuner, FullAndEmptyTimeAfterTimeGrowsByAQuarter) {
  Tuner tuner;
  size_t now = tuner.capacity();
  for (int i = 0; i < 15; ++i) EXPECT_EQ(tuner.after_batch(1), now);
  EXPECT_EQ(tuner.after_batch(1), now + now / 4 + 1);
}

// Or the blocks of what comes to its end would be cached.
TEST(CacheTuner, AnIdleClassForgetsItsBatches) {
  Tuner tuner;
  tuner.on_refill(600);
  tuner.set_capacity(0);
  EXPECT_EQ(tuner.on_overflow_after_refills(kSmall), 0u);
  EXPECT_FALSE(tuner.builds());
}

TEST(CacheTuner, SuchCyclesCountWithinARoundOnly) {
  Tuner tuner;
  for (int i = 0; i < 100; ++i) {
    if (i % 10 == 0) tuner.on_round();
    EXPECT_EQ(tuner.after_batch(1), tuner.capacity());
  }
}

TEST(CacheTuner, GrowthEndsWithTheClass) {
  for (size_t c = 0; c < kClasses; ++c) {
    Tuner tuner{ClassIndex(c)};
    EXPECT_LE(tuner.capacity(), CacheTuner::max_capacity(c));
    for (int i = 0; i < 200; ++i) tuner.set_capacity(tuner.after_batch(60'000));
    EXPECT_EQ(tuner.capacity(), CacheTuner::max_capacity(c));
    EXPECT_LE(tuner.capacity() * kClassSize[c], std::max<size_t>(CacheTuner::kMaxBytes, 2 * kClassSize[c]));
  }
}

TEST(CacheTuner, IdleIsWhatHasNotChangedBetweenTwoLooks) {
  Tuner tuner;
  int a, b;
  EXPECT_FALSE(tuner.on_tick(5, &a, false));
  EXPECT_FALSE(tuner.on_tick(5, &b, false)) << "another block is on top";
  EXPECT_FALSE(tuner.on_tick(6, &b, false));
  tuner.on_refill(1);
  EXPECT_FALSE(tuner.on_tick(6, &b, false)) << "it lives from its cache";
  EXPECT_TRUE(tuner.on_tick(6, &b, false));
}

TEST(CacheTuner, WhatIsOnlyFreedWhileTheProcessShrinksIsIdleToo) {
  Tuner tuner;
  int a, b, c, d;
  EXPECT_FALSE(tuner.on_tick(5, &a, true)) << "it did not overflow";
  tuner.on_overflow();
  EXPECT_FALSE(tuner.on_tick(6, &b, false)) << "the process does not shrink";
  tuner.on_overflow();
  EXPECT_TRUE(tuner.on_tick(7, &c, true));
  tuner.on_overflow();
  tuner.on_refill(1);
  EXPECT_FALSE(tuner.on_tick(8, &d, true)) << "blocks are allocated as well";
}

TEST(CacheTuner, HalfOfWhatLayThereAtEveryLookIsSurplus) {
  Tuner tuner;
  int blocks[4];
  for (size_t i : {0, 1, 2, 3}) tuner.on_tick(i == 2 ? 40 : 100, &blocks[i], false);
  EXPECT_EQ(tuner.take_surplus(), 20u);
}

TEST(CacheTuner, OthersFreeWhatIsAllocatedWithoutOverflow) {
  Tuner tuner;
  for (int i = 0; i < 127; ++i) tuner.on_refill(64);
  EXPECT_FALSE(tuner.feeds_other_threads());
  for (int i = 0; i < 2000; ++i) tuner.on_refill(64);
  EXPECT_TRUE(tuner.feeds_other_threads());
  tuner.on_overflow_after_refills(kSmall);
  EXPECT_FALSE(tuner.feeds_other_threads());
}

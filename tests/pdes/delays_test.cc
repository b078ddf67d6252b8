#include "engine/delays.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace pdes {
namespace {

Delays recorded(const std::vector<double>& delays) {
  DelayRecorder recorder;
  for (const double delay : delays) recorder.add(delay);
  return recorder.result();
}

TEST(Delays, OfNoEvents) {
  const Delays none = DelayRecorder().result();
  EXPECT_EQ(none.count, 0u);
  EXPECT_EQ(none.smallest, 0);
  EXPECT_EQ(none.percentile(50), 0);
  EXPECT_EQ(Delays().percentile(50), 0);
}

TEST(Delays, CountMeanAndExtremesAreExact) {
  const Delays delays = recorded({0.5, 2, 0.25, 1.25});
  EXPECT_EQ(delays.count, 4u);
  EXPECT_EQ(delays.smallest, 0.25);
  EXPECT_EQ(delays.mean, 1);
  EXPECT_EQ(delays.largest, 2);
}

TEST(Delays, PercentilesAreNear) {
  for (const double unit : {1e-7, 0.1, 3.0, 1e5}) {
    DelayRecorder recorder;
    for (int i = 1000; i >= 1; --i) recorder.add(i * unit);
    const Delays delays = recorder.result();
    for (const double p : {0.1, 1.0, 10.0, 50.0, 90.0, 99.0, 99.9}) {
      EXPECT_NEAR(delays.percentile(p), p * 10 * unit, 0.03 * p * 10 * unit) << p << " of " << unit;
    }
  }
}

TEST(Delays, PercentilesStayBetweenTheExtremes) {
  const Delays same = recorded(std::vector<double>(10, 1.0));
  EXPECT_EQ(same.percentile(1), 1);
  EXPECT_EQ(same.percentile(99), 1);
}

TEST(Delays, BeyondTheBuckets) {
  const Delays small = recorded({0.0, -0.0, 1e-300, 0x1p-40});
  EXPECT_EQ(small.histogram.front(), 4u);
  EXPECT_LE(small.percentile(50), 0x1p-40);
  const Delays large = recorded({1e300, 0x1p40});
  EXPECT_EQ(large.histogram.back(), 2u);
  EXPECT_GE(large.percentile(50), 0x1p40);
}

TEST(Delays, BucketsAreA32ndOfAPowerOfTwo) {
  const Delays delays = recorded({1.0, 1.03, 1.04, 2.0, 1.99});
  const std::size_t one = 32 * 32;
  ASSERT_EQ(delays.histogram.size(), 64u * 32);
  EXPECT_EQ(delays.histogram[one], 2u);
  EXPECT_EQ(delays.histogram[one + 1], 1u);
  EXPECT_EQ(delays.histogram[one + 31], 1u);
  EXPECT_EQ(delays.histogram[one + 32], 1u);
}

TEST(Delays, MergedAreAsIfOneHadRecordedAll) {
  DelayRecorder all, odd, even;
  for (int i = 1; i <= 1000; ++i) {
    const double delay = 0.1 * i;
    all.add(delay);
    (i % 2 == 0 ? even : odd).add(delay);
  }
  even.merge(odd);
  even.merge(DelayRecorder());
  const Delays merged = even.result(), expected = all.result();
  EXPECT_EQ(merged.count, expected.count);
  EXPECT_EQ(merged.smallest, expected.smallest);
  EXPECT_EQ(merged.mean, expected.mean);
  EXPECT_EQ(merged.largest, expected.largest);
  EXPECT_EQ(merged.histogram, expected.histogram);
}

}  // namespace
}  // namespace pdes

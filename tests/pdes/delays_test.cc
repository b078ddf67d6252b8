#include "engine/delays.h"

#include <gtest/gtest.h>

#include <vector>

namespace pdes {
namespace {

DelayRecorder recorder_of(const std::vector<double>& delays) {
  DelayRecorder recorder;
  for (const double delay : delays) recorder.add(delay);
  return recorder;
}
Delays recorded(const std::vector<double>& delays) { return recorder_of(delays).result(); }

TEST(Delays, OfNoEvents) {
  const Delays none = recorded({});
  EXPECT_EQ(none.count, 0u);
  EXPECT_EQ(none.smallest, 0);
  EXPECT_EQ(none.percentile(50), 0);
  EXPECT_EQ(Delays().percentile(50), 0);
}

TEST(Delays, MergedAreAsIfOneHadRecordedAllExactly) {
  DelayRecorder odd = recorder_of({0.5, 0.25});
  odd.merge(recorder_of({2, 1.25}));
  odd.merge(DelayRecorder());
  const Delays delays = odd.result();
  EXPECT_EQ(delays.count, 4u);
  EXPECT_EQ(delays.smallest, 0.25);
  EXPECT_EQ(delays.mean, 1);
  EXPECT_EQ(delays.largest, 2);
  EXPECT_EQ(delays.histogram, recorded({0.25, 0.5, 1.25, 2}).histogram);
}

TEST(Delays, PercentilesAreNearAndNeverBeyondTheExtremes) {
  for (const double unit : {1e-7, 0.1, 3.0, 1e5}) {
    DelayRecorder recorder;
    for (int i = 1000; i >= 1; --i) recorder.add(i * unit);
    const Delays delays = recorder.result();
    for (const double p : {0.1, 1.0, 10.0, 50.0, 90.0, 99.0, 99.9}) {
      EXPECT_NEAR(delays.percentile(p), p * 10 * unit, 0.03 * p * 10 * unit) << p << " of " << unit;
    }
  }
  for (const double only : {1.0, 1e-300, 1e300}) EXPECT_EQ(recorded({only, only}).percentile(50), only);
}

TEST(Delays, BucketsAreA32ndOfAPowerOfTwoAndTheLastTakeAllBeyond) {
  const std::size_t one = 32 * 32, last = 64 * 32 - 1;
  for (const auto& [delay, bucket] : {std::pair{1.0, one},
                                      {1.03, one},
                                      {1.04, one + 1},
                                      {1.99, one + 31},
                                      {2.0, one + 32},
                                      {0.0, 0},
                                      {-0.0, 0},
                                      {1e-300, 0},
                                      {0x1p-40, 0},
                                      {0x1p40, last},
                                      {1e300, last}}) {
    const Delays delays = recorded({delay});
    ASSERT_EQ(delays.histogram.size(), last + 1);
    EXPECT_EQ(delays.histogram[bucket], 1u) << delay;
  }
}

}  // namespace
}  // namespace pdes

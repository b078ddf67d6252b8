// Parts of what model programs share: numbers for people, shares of an interval, the lookahead that is suggested.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "app/meter.h"
#include "app/summary.h"
#include "app/text.h"

namespace pdes::app {
namespace {

TEST(Text, NumbersForPeople) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(1234567890), "1,234,567,890");
  EXPECT_EQ(short_number(7), "7");
  EXPECT_EQ(short_number(23'400'000), "23.4 M");
  EXPECT_EQ(short_number(1.5e12), "1.50 T");
  EXPECT_EQ(short_bytes(512), "512 B");
  EXPECT_EQ(short_bytes(1536), "1.50 KiB");
  EXPECT_EQ(short_bytes(3.0 * 1024 * 1024 * 1024), "3 GiB");
  EXPECT_EQ(duration(2.34), "2.3 s");
  EXPECT_EQ(duration(600), "10 min");
  EXPECT_EQ(duration(3720), "1 h 02 min");
}

TEST(Meter, TellsWhatHappenedSinceTheLastTime) {
  Meter meter;
  const Sample none = meter.next({0, 0, 0, 0, 0, 0, {0}, {0}, 0, 0});
  EXPECT_EQ(none.events_per_s, 0);
  EXPECT_EQ(none.percent, 0);
  EXPECT_EQ(none.seconds_to_go, std::numeric_limits<double>::infinity());

  Progress progress{1, 10, 100, 1000, 0.5, 20, {0.25, 0.75}, {400, 600}, 5, 640};
  Sample first = meter.next(progress);
  EXPECT_DOUBLE_EQ(first.events_per_s, 1000);
  EXPECT_DOUBLE_EQ(first.percent, 10);
  EXPECT_DOUBLE_EQ(first.seconds_to_go, 9);
  EXPECT_DOUBLE_EQ(first.blocked_share, 0.5);

  progress.wall_s = 3;
  progress.now = 40;
  progress.events = 7000;
  progress.blocked_s = {2.25, 0.75};
  Sample second = meter.next(progress);
  EXPECT_DOUBLE_EQ(second.events_per_s, 3000);
  EXPECT_EQ(second.blocked, (std::vector<double>{1, 0}));
  EXPECT_DOUBLE_EQ(second.seconds_to_go, 4.5);
  EXPECT_EQ(point(second)["thread_events"], (std::vector<std::uint64_t>{400, 600}));
}

TEST(SuggestedLookahead, HasTwoDigitsAndIsNeverAboveWhatWasSeen) {
  for (auto [seen, suggested] : {std::pair{0.100003, 0.1}, {0.1, 0.1}, {5.0999, 5.0}, {1299.0, 1200.0}})
    EXPECT_EQ(suggested_lookahead(seen), suggested);
  for (double none : {0.0, -1.0, std::numeric_limits<double>::infinity()}) EXPECT_EQ(suggested_lookahead(none), 0);
  for (int digits = 10; digits < 100; ++digits) {
    for (int power = -30; power < 30; ++power) {
      const double exact = std::strtod(text("%de%d", digits, power).c_str(), nullptr);
      for (const double seen : {exact, std::nextafter(exact, 0), 1.005 * exact}) {
        EXPECT_LE(suggested_lookahead(seen), seen);
        EXPECT_GT(suggested_lookahead(seen), 0.9 * seen);
      }
    }
  }
}

}  // namespace
}  // namespace pdes::app

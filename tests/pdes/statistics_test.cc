#include "pdes/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "pdes/archive.h"
#include "pdes/report.h"

namespace pdes {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Report ended(double now) {
  Report report;
  report.ends_at(now);
  return report;
}

TEST(Level, IsAMeanOverTime) {
  Level queue(2, 1);
  queue.set(3, 5);    // 2 for 2
  queue.add(4, -4);   // 5 for 1
  queue.add(4, 0.5);  // 1 for 0
  Report report = ended(10);
  report.level("queue", queue);  // 1.5 for 6
  const Report::Number& number = report.at("queue");
  EXPECT_DOUBLE_EQ(number.mean(), (2 * 2 + 5 * 1 + 1.5 * 6) / 9);
  EXPECT_EQ(number.second.value(), 9);
  EXPECT_EQ(number.least, 1);
  EXPECT_EQ(number.most, 5);
  EXPECT_EQ(queue.value(), 1.5);
}

TEST(Level, OfAllLpsIsWeightedByTheirTimes) {
  Level one(1, 0), other(4, 6);
  Report report = ended(8);
  report.level("queue", one);
  report.level("queue", other);
  EXPECT_DOUBLE_EQ(report.at("queue").mean(), (8 * 1 + 2 * 4) / 10.0);
}

TEST(Level, ForgetsItsWarmUp) {
  Level queue(100, 0);
  queue.set(5, 3);
  queue.restart(7);
  queue.set(9, 1);
  Report report = ended(11);
  report.level("queue", queue);
  EXPECT_DOUBLE_EQ(report.at("queue").mean(), 2);
  EXPECT_EQ(report.at("queue").most, 3);
}

// A run that is stopped from outside may end before an LP's last change.
TEST(Level, NeverRunsBackwards) {
  Level queue(1, 0);
  queue.set(4, 100);
  Report report = ended(3);
  report.level("queue", queue);
  EXPECT_EQ(report.at("queue").mean(), 1);
}

TEST(Level, OfNoTimeHasNoMean) {
  Report report = ended(0);
  report.level("queue", Level(7));
  EXPECT_EQ(report.at("queue").mean(), 0);
  EXPECT_EQ(report.at("queue").most, 7);
}

std::vector<double> spread_values(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::lognormal_distribution<double> sizes(0, 4);
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(i % 5 == 4 ? -sizes(random) : sizes(random));
  return values;
}

Histogram histogram_of(std::span<const double> values) {
  Histogram histogram;
  for (const double value : values) histogram.add(value);
  return histogram;
}

TEST(HistogramTest, QuantilesAreWithinTwoPercent) {
  std::vector<double> values = spread_values(10'001, 1);
  Report report;
  report.histogram("size", histogram_of(values));
  std::sort(values.begin(), values.end());
  const Report::Number& number = report.at("size");
  EXPECT_EQ(number.count, 10'001);
  for (const double q : {0.0001, 0.01, 0.19, 0.25, 0.5, 0.75, 0.9, 0.999, 0.99999}) {
    const auto rank = static_cast<std::size_t>(std::ceil(q * 10'001)) - 1;
    EXPECT_NEAR(number.quantile(q), values[rank], 0.02 * std::fabs(values[rank])) << q;
  }
  EXPECT_EQ(number.least, values.front());
  EXPECT_EQ(number.most, values.back());
}

TEST(HistogramTest, BucketsAreInTheOrderOfTheirValues) {
  const double kRising[] = {
      -std::numeric_limits<double>::max(), -1e300, -1, -1e-300, -5e-324, 0, 5e-324, 1e-300, 1, 1.04, 2, 1e300,
      std::numeric_limits<double>::max()};
  for (std::size_t i = 1; i < std::size(kRising); ++i)
    EXPECT_LE(Histogram::bucket_of(kRising[i - 1]), Histogram::bucket_of(kRising[i])) << i;
  EXPECT_EQ(Histogram::bucket_of(-0.0), Histogram::bucket_of(0.0));
  for (const double value : {1.0, 1.5, 3.14159, 1e-9, -7e20, -1e-300}) {
    const double middle = Histogram::middle_of(Histogram::bucket_of(value));
    EXPECT_NEAR(middle, value, std::fabs(value) / 62);
    EXPECT_EQ(Histogram::bucket_of(middle), Histogram::bucket_of(value));
  }
}

TEST(HistogramTest, OfOneValueOrNone) {
  Report report;
  report.histogram("none", Histogram());
  EXPECT_EQ(report.at("none").quantile(0.5), 0);
  const double kOne[] = {3.3};
  report.histogram("one", histogram_of(kOne));
  for (const double q : {0.001, 0.5, 0.999}) EXPECT_EQ(report.at("one").quantile(q), 3.3);
}

TEST(HistogramTest, IsSavedAndReadAgain) {
  Histogram histogram = histogram_of(spread_values(500, 2)), copy;
  from_bytes(to_bytes(histogram), copy);
  Report a, b;
  a.histogram("size", histogram);
  b.histogram("size", copy);
  EXPECT_EQ(a.digest(), b.digest());
}

// Of independent observations the interval is right in 95 of 100 cases; of what depends on its predecessor, too, if the
// batches are long, and much too narrow if they are single observations.
double covered(double correlation, std::uint64_t batch) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  int hits = 0;
  constexpr int kRuns = 400;
  for (int run = 0; run < kRuns; ++run) {
    BatchMeans means(batch);
    double value = normal(random);
    for (std::uint64_t i = 0; i < 20 * std::max<std::uint64_t>(batch, 100); ++i) {
      means.add(5 + value);
      value = correlation * value + std::sqrt(1 - correlation * correlation) * normal(random);
    }
    Report report;
    report.interval("mean", means);
    hits += std::fabs(report.at("mean").mean() - 5) < report.at("mean").half_width();
  }
  return static_cast<double>(hits) / kRuns;
}

TEST(BatchMeansTest, TheIntervalIsRightAsOftenAsItSays) {
  EXPECT_NEAR(covered(0, 1), 0.95, 0.04);
  EXPECT_NEAR(covered(0.9, 400), 0.95, 0.04);
  EXPECT_LT(covered(0.9, 1), 0.6);
}

TEST(BatchMeansTest, OfAFewBatchesIsStudents) {
  const double kHalfWidths[] = {12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281};
  for (std::size_t degrees = 1; degrees <= std::size(kHalfWidths); ++degrees) {
    // Batches whose means have a standard deviation of the square root of their number, so that all else cancels.
    const auto batches = static_cast<double>(degrees + 1);
    BatchMeans means(2);
    const double off = std::sqrt(batches * static_cast<double>(degrees) / 2);
    for (double value : {off, off, -off, -off}) means.add(value);
    for (std::size_t i = 2; i < degrees + 1; ++i) means.add(0), means.add(0);
    Report report;
    report.interval("mean", means);
    EXPECT_NEAR(report.at("mean").half_width(), kHalfWidths[degrees - 1], 0.001) << degrees;
  }
}

TEST(BatchMeansTest, CountsWholeBatchesOfOneSizeOnly) {
  BatchMeans means(3), others(4), none(0);
  for (const double value : {1.0, 2.0, 3.0, 40.0, 50.0}) means.add(value);
  Report report;
  report.interval("mean", means);
  EXPECT_EQ(report.at("mean").count, 1);
  EXPECT_EQ(report.at("mean").mean(), 2);
  EXPECT_EQ(report.at("mean").half_width(), kInfinity);
  EXPECT_THROW(report.interval("mean", others), Error);
  EXPECT_THROW(report.interval("none", none), Error);
  Report other;
  other.interval("mean", others);
  EXPECT_THROW(report.merge(other), Error);
}

// ---- All of them, merged and sent. ----------------------------------------------------------------------------------

Report report_of(double value) {
  Report report = ended(100);
  Level level(value, 1);
  level.set(50, -value);
  const double kValues[] = {value, value / 7, -value};
  BatchMeans means(1);
  for (const double each : kValues) means.add(each);
  report.level("level", level);
  report.histogram("histogram", histogram_of(kValues));
  report.interval("interval", means);
  report.count("count", 1);
  return report;
}

TEST(LaterStatistics, OrderOfMergesDoesNotMatter) {
  std::vector<double> values = spread_values(60, 4);
  Report expected;
  for (const double value : values) expected.merge(report_of(value));
  std::mt19937_64 random(5);
  for (int round = 0; round < 20; ++round) {
    std::shuffle(values.begin(), values.end(), random);
    std::vector<Report> parts(3);
    for (const double value : values) parts[random() % parts.size()].merge(report_of(value));
    Report merged;
    for (const Report& part : parts) merged.merge(Report::read(part.write()));
    EXPECT_EQ(merged.digest(), expected.digest());
    EXPECT_EQ(merged.at("interval").half_width(), expected.at("interval").half_width());
    EXPECT_EQ(merged.at("histogram").quantile(0.3), expected.at("histogram").quantile(0.3));
    EXPECT_EQ(merged.at("level").mean(), expected.at("level").mean());
  }
}

TEST(LaterStatistics, AreInTheDigestExactly) {
  const auto digest = [](const std::function<void(Report&)>& add) {
    Report report = ended(10);
    add(report);
    return report.digest();
  };
  const auto level = [&](double began, double until) {
    Level one_then_two(1, began);
    one_then_two.set(until, 2);
    return digest([&](Report& report) { report.level("x", one_then_two); });
  };
  EXPECT_NE(level(0, 8), level(2, 6));  // 8 * 1 + 2 * 2 = 4 * 1 + 4 * 2
  const auto interval = [&](std::uint64_t size, double a, double b) {
    BatchMeans means(size);
    for (const double value : {a, a, b, b, 0.5, 0.5, -0.5, -0.5}) means.add(value);
    return digest([&](Report& report) { report.interval("x", means); });
  };
  EXPECT_NE(interval(2, 0.25, -0.25), interval(2, 0.125, -0.125));
  const auto histogram = [&](double a, double b) {
    const double kValues[] = {1, -1, a, b};
    return digest([&](Report& report) { report.histogram("x", histogram_of(kValues)); });
  };
  EXPECT_NE(histogram(0.5, -0.5), histogram(0.25, -0.25));
}

TEST(LaterStatistics, AreRefusedIfNotFinite) {
  for (const double value : {kInfinity, std::nan("")}) {
    Report report = ended(10);
    const double kValue[] = {value};
    BatchMeans means(1);
    means.add(value);
    EXPECT_THROW(report.level("x", Level(value)), Error);
    EXPECT_THROW(report.histogram("x", histogram_of(kValue)), Error);
    EXPECT_THROW(report.interval("x", means), Error);
    EXPECT_TRUE(report.numbers().empty());
  }
}

TEST(LaterStatistics, NoDamageGoesUnnoticedThatWouldMatter) {
  const std::vector<std::byte> bytes = report_of(3).write();
  for (std::vector<std::byte> shorter = bytes; !shorter.empty();) {
    shorter.pop_back();
    try {  // between two numbers a report may end
      EXPECT_EQ(Report::read(shorter).find("count"), nullptr);
    } catch (const Error&) { continue; }
  }
  std::mt19937_64 random(6);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::byte> damaged = bytes;
    damaged[random() % damaged.size()] ^= std::byte{1} << (random() % 8);
    try {
      const Report report = Report::read(damaged);
      const Report::Number* number = report.find("histogram");
      std::uint64_t in_buckets = 0;
      if (number == nullptr) continue;
      for (const auto& [bucket, count] : number->buckets) in_buckets += count;
      EXPECT_EQ(in_buckets, static_cast<std::uint64_t>(number->count));
    } catch (const Error&) { continue; }
  }
}

}  // namespace
}  // namespace pdes

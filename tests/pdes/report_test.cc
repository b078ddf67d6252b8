#include "pdes/report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <initializer_list>
#include <random>

#include "pdes/options.h"

namespace pdes {
namespace {

constexpr double kLargest = std::numeric_limits<double>::max();
constexpr double kSmallest = std::numeric_limits<double>::denorm_min();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

ExactSum sum_of(const std::vector<double>& values) {
  ExactSum sum;
  for (const double value : values) sum.add(value);
  return sum;
}

double total(const std::vector<double>& values) { return sum_of(values).value(); }

// Finite ones of any exponent, so that no two sums in floating point would agree.
std::vector<double> wild_values(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> values;
  while (values.size() < count) {
    const auto value = std::bit_cast<double>(random());
    if (std::isfinite(value)) values.push_back(value);
  }
  return values;
}

TEST(ExactSum, LosesNothing) {
  EXPECT_EQ(total({}), 0);
  EXPECT_FALSE(std::signbit(total({-0.0, 0.0})));
  EXPECT_EQ(total({1e308, 1, -1e308}), 1);
  EXPECT_EQ(total({1e308, kSmallest, -1e308}), kSmallest);
  EXPECT_EQ(total({kLargest, kLargest, -kLargest}), kLargest);
  EXPECT_EQ(total({-kLargest, -kLargest, kLargest, 3}), -kLargest);
  EXPECT_EQ(total({1e100, 1, -1e100, 1e-100, -1, -1e-100}), 0);
  EXPECT_EQ(total(std::vector<double>(10, 0.1)), 1);
  EXPECT_EQ(total({-1, -0x1p-60, 1}), -0x1p-60);
}

TEST(ExactSum, KeepsDenormals) {
  EXPECT_EQ(total({kSmallest, kSmallest, kSmallest}), 3 * kSmallest);
  EXPECT_EQ(total({kSmallest, -4 * kSmallest}), -3 * kSmallest);
  EXPECT_EQ(total({0x1p-1022, -kSmallest}), std::nextafter(0x1p-1022, 0));
  EXPECT_EQ(total({0x1.fffffffffffffp-1022, kSmallest}), 0x1p-1021);
}

TEST(ExactSum, RoundsToTheNearestTiesToEven) {
  EXPECT_EQ(total({1, 0x1p-53}), 1);
  EXPECT_EQ(total({1, 0x1p-53, kSmallest}), 1 + 0x1p-52);
  EXPECT_EQ(total({1, 0x1p-53, -kSmallest}), 1);
  EXPECT_EQ(total({1 + 0x1p-52, 0x1p-53}), 1 + 0x1p-51);
  EXPECT_EQ(total({-1, -0x1p-52, -0x1p-53}), -1 - 0x1p-51);
  EXPECT_EQ(total({-1, -0x1p-53, -kSmallest}), -1 - 0x1p-52);
  EXPECT_EQ(total({0x1p53, 1}), 0x1p53);
  EXPECT_EQ(total({0x1p53, 1, 0x1p-500}), 0x1p53 + 2);
}

TEST(ExactSum, AboveTheLargestIsInfinite) {
  EXPECT_EQ(total({kLargest, 0x1p969}), kLargest);
  EXPECT_EQ(total({kLargest, 0x1p970}), kInfinity);
  EXPECT_EQ(total({-kLargest, -kLargest}), -kInfinity);
}

// 128-bit integers are the oracle.
TEST(ExactSum, AgreesWithIntegers) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    ExactSum sum;
    __int128 exact = 0;
    for (int i = 0; i < 40; ++i) {
      const auto mantissa = static_cast<std::int64_t>(random()) >> 11;
      const int shift = static_cast<int>(random() % 60);
      sum.add(std::ldexp(static_cast<double>(mantissa), shift - 80));
      exact += static_cast<__int128>(mantissa) << shift;
    }
    ASSERT_EQ(sum.value(), std::ldexp(static_cast<double>(exact), -80));
  }
}

TEST(ExactSum, OrderAndGroupingDoNotMatter) {
  std::vector<double> values = wild_values(3000, 2);
  const ExactSum::Digits expected = sum_of(values).digits();
  std::mt19937_64 random(3);
  for (int round = 0; round < 20; ++round) {
    std::shuffle(values.begin(), values.end(), random);
    std::vector<ExactSum> parts(1 + random() % 7);
    for (const double value : values) parts[random() % parts.size()].add(value);
    ExactSum sum;
    for (const ExactSum& part : parts) sum.add(part);
    ASSERT_EQ(sum.digits(), expected);
  }
}

TEST(ExactSum, WhatIsTakenBackLeavesNothing) {
  const std::vector<double> values = wild_values(1000, 4);
  ExactSum sum = sum_of(values);
  for (const double value : values) sum.add(-value);
  EXPECT_EQ(sum.digits(), ExactSum::Digits{});
}

TEST(ExactSum, HasRoomForTwoToThe64OfTheLargest) {
  ExactSum sum;
  sum.add(-kLargest);
  for (int i = 0; i < 64; ++i) sum.add(ExactSum(sum));
  ExactSum doubles;
  doubles.add(kLargest);
  for (int i = 0; i < 64; ++i) doubles.add(ExactSum(doubles));
  EXPECT_EQ(sum.value(), -kInfinity);
  sum.add(doubles);
  sum.add(1);
  EXPECT_EQ(sum.value(), 1);
}

TEST(ExactSum, DigitsGiveTheSumBack) {
  for (const double value : wild_values(100, 5)) EXPECT_EQ(ExactSum::of(sum_of({value}).digits()).value(), value);
}

// What one LP out of many would report.
Report report_of(double value) {
  Report report;
  report.count("events", static_cast<std::int64_t>(value) % 1000);
  report.sum("work", value);
  Tally tally;
  tally.add(value);
  tally.add(-value / 3);
  report.tally("delay", tally);
  return report;
}

Report example() {
  Report report = report_of(7.5);
  report.merge(report_of(-1e-300));
  report.tally("never", Tally());
  return report;
}

void expect_same(const Report& a, const Report& b) {
  ASSERT_EQ(a.numbers().size(), b.numbers().size());
  for (const Report::Number& number : a.numbers()) {
    const Report::Number& other = b.at(number.name);
    EXPECT_EQ(number.kind, other.kind);
    EXPECT_EQ(number.count, other.count);
    EXPECT_EQ(number.sum.digits(), other.sum.digits());
    EXPECT_EQ(std::bit_cast<std::uint64_t>(number.least), std::bit_cast<std::uint64_t>(other.least));
    EXPECT_EQ(std::bit_cast<std::uint64_t>(number.most), std::bit_cast<std::uint64_t>(other.most));
  }
  EXPECT_EQ(a.digest(), b.digest());
}

TEST(Report, AddsUpByName) {
  Report report;
  report.count("calls", 3);
  report.sum("waiting", 0.5);
  report.count("calls", -1);
  report.sum("waiting", 1e308);
  report.sum("waiting", -1e308);
  Tally tally;
  for (const double value : {2.0, 7.0, 3.0}) tally.add(value);
  report.tally("delay", tally);
  report.tally("delay", Tally());

  EXPECT_EQ(report.count_of("calls"), 2);
  EXPECT_EQ(report.sum_of("waiting"), 0.5);
  EXPECT_EQ(report.at("delay").count, 3);
  EXPECT_EQ(report.at("delay").mean(), 4);
  EXPECT_EQ(report.at("delay").least, 2);
  EXPECT_EQ(report.at("delay").most, 7);
  ASSERT_EQ(report.numbers().size(), 3u);
  EXPECT_EQ(report.numbers()[1].name, "waiting");
}

TEST(Report, CountsWrapRatherThanOverflow) {
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  Report report;
  for (const std::int64_t value : {kMax, std::int64_t{1}, std::int64_t{-1}}) report.count("calls", value);
  EXPECT_EQ(report.count_of("calls"), kMax);
}

TEST(Report, UnknownNames) {
  EXPECT_EQ(Report().find("calls"), nullptr);
  EXPECT_THROW(Report().at("calls"), Error);
  EXPECT_THROW(Report().count_of("calls"), Error);
  EXPECT_THROW(Report().sum_of("calls"), Error);
}

TEST(Report, RefusesWhatIsNotFinite) {
  for (const double value : {kInfinity, -kInfinity, std::nan("")}) {
    Report report;
    EXPECT_THROW(report.sum("work", value), Error);
    Tally tally;
    tally.add(1);
    tally.add(value);
    EXPECT_THROW(report.tally("delay", tally), Error);
    EXPECT_TRUE(report.numbers().empty());
  }
}

TEST(Report, RefusesOneNameForTwoKinds) {
  Report report;
  report.count("calls", 1);
  EXPECT_THROW(report.sum("calls", 1), Error);
  EXPECT_THROW(report.tally("calls", Tally()), Error);
  Report other;
  other.sum("calls", 1);
  EXPECT_THROW(report.merge(other), Error);
}

TEST(Report, OrderOfMergesDoesNotMatter) {
  std::vector<double> values = wild_values(200, 6);
  for (double& value : values) value = std::fmod(value, 1e9);
  values.insert(values.end(), {0.0, -0.0, 1e300, -1e300, 1e-300});
  Report expected;
  for (const double value : values) expected.merge(report_of(value));
  std::mt19937_64 random(7);
  for (int round = 0; round < 20; ++round) {
    std::shuffle(values.begin(), values.end(), random);
    std::vector<Report> parts(1 + random() % 5);
    for (const double value : values) parts[random() % parts.size()].merge(report_of(value));
    Report merged;
    for (const Report& part : parts) merged.merge(part);
    expect_same(merged, expected);
  }
}

// Two zeros are equal, but their bits are not.
TEST(Report, ZeroHasOneSign) {
  for (const auto& values : {std::array{0.0, -0.0}, std::array{-0.0, 0.0}}) {
    Report report;
    for (const double value : values) {
      Tally tally;
      tally.add(value);
      report.tally("delay", tally);
    }
    EXPECT_FALSE(std::signbit(report.at("delay").least));
    EXPECT_FALSE(std::signbit(report.at("delay").most));
  }
}

TEST(Report, DigestSeesEveryValueExactly) {
  std::vector<std::uint64_t> digests;
  const auto add = [&](auto change) {
    Report report = example();
    change(report);
    digests.push_back(report.digest());
  };
  const auto of = [](std::initializer_list<double> values) {
    Tally tally;
    for (const double value : values) tally.add(value);
    return tally;
  };
  add([](Report&) {});
  add([](Report& report) { report.count("events", 1); });
  add([](Report& report) { report.sum("work", kSmallest); });
  add([&](Report& report) { report.tally("delay", of({1, -1})); });
  add([&](Report& report) { report.tally("never", of({1, -1})); });
  add([](Report& report) { report.count("other", 0); });
  add([](Report& report) { report.count("another", 0); });
  add([](Report& report) { report.sum("other", 0); });
  std::sort(digests.begin(), digests.end());
  EXPECT_EQ(std::adjacent_find(digests.begin(), digests.end()), digests.end());

  // Equal counts and sums, but for the least or the most.
  Report narrow, low, high;
  narrow.tally("delay", of({-5, 5, 0, 0}));
  low.tally("delay", of({-6, 5, 1, 0}));
  high.tally("delay", of({-5, 6, -1, 0}));
  EXPECT_NE(narrow.digest(), low.digest());
  EXPECT_NE(narrow.digest(), high.digest());

  Report forth, back;
  forth.count("a", 1);
  forth.count("b", 2);
  back.count("b", 2);
  back.count("a", 1);
  EXPECT_EQ(forth.digest(), back.digest());
}

TEST(Report, BytesGiveItBack) {
  expect_same(Report::read(Report().write()), Report());
  Report copy = Report::read(example().write());
  expect_same(copy, example());
  EXPECT_EQ(copy.write(), example().write());
  copy.merge(report_of(3));
  Report expected = example();
  expected.merge(report_of(3));
  expect_same(copy, expected);
}

TEST(Report, RefusesTruncatedBytes) {
  Report report;
  report.count("calls", 1);
  const std::vector<std::byte> bytes = report.write();
  for (std::size_t size = 1; size < bytes.size(); ++size)
    EXPECT_THROW(Report::read({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}), Error) << size;
  std::vector<std::byte> longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_THROW(Report::read(longer), Error);
}

// Offsets: size of name 0, kind 4, count 8, least 16, most 24, digits from 32 on.
TEST(Report, RefusesDamagedBytes) {
  Report report;
  Tally tally;
  tally.add(1);
  report.tally("delay", tally);
  const std::vector<std::byte> bytes = report.write();
  const auto damaged = [&](std::size_t offset, const auto& value) {
    std::vector<std::byte> copy = bytes;
    const auto* start = reinterpret_cast<const std::byte*>(&value);
    std::copy(start, start + sizeof value, copy.begin() + static_cast<std::ptrdiff_t>(offset));
    return copy;
  };
  EXPECT_NO_THROW(Report::read(damaged(16, 0.5)));
  EXPECT_THROW(Report::read(damaged(0, ~std::uint32_t{0})), Error);
  EXPECT_THROW(Report::read(damaged(4, std::uint32_t{3})), Error);
  EXPECT_THROW(Report::read(damaged(4, std::uint32_t{256})), Error);
  EXPECT_THROW(Report::read(damaged(16, std::nan(""))), Error);
  EXPECT_THROW(Report::read(damaged(16, 2.0)), Error);
  EXPECT_THROW(Report::read(damaged(24, kInfinity)), Error);
  EXPECT_THROW(Report::read(damaged(32, std::int64_t{-1})), Error);
  EXPECT_THROW(Report::read(damaged(32, std::int64_t{1} << 32)), Error);
  EXPECT_THROW(Report::read(damaged(32 + 67 * 8, std::numeric_limits<std::int64_t>::max())), Error);
  std::vector<std::byte> twice = bytes;
  twice.insert(twice.end(), bytes.begin(), bytes.end());
  EXPECT_THROW(Report::read(twice), Error);
}

}  // namespace
}  // namespace pdes

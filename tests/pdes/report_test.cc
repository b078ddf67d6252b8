#include "pdes/report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "pdes/options.h"

namespace pdes {
namespace {

constexpr double kLargest = std::numeric_limits<double>::max();
constexpr double kSmallest = std::numeric_limits<double>::denorm_min();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Values = std::vector<double>;

ExactSum sum_of(const Values& values) {
  ExactSum sum;
  for (const double value : values) sum.add(value);
  return sum;
}

// Finite ones of any exponent, so that no two sums in floating point would agree.
Values wild_values(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Values values;
  while (values.size() < count) {
    const auto value = std::bit_cast<double>(random());
    if (std::isfinite(value)) values.push_back(value);
  }
  return values;
}

TEST(ExactSum, LosesNothingAndIsRoundedOnceTiesToEven) {
  const std::pair<Values, double> kSums[] = {
      {{}, 0},
      {{1e308, 1, -1e308}, 1},
      {{1e308, kSmallest, -1e308}, kSmallest},
      {{kLargest, kLargest, -kLargest}, kLargest},
      {{-kLargest, -kLargest, kLargest, 3}, -kLargest},
      {{1e100, 1, -1e100, 1e-100, -1, -1e-100}, 0},
      {Values(10, 0.1), 1},
      {{-1, -0x1p-60, 1}, -0x1p-60},
      // Denormals.
      {{kSmallest, kSmallest, kSmallest}, 3 * kSmallest},
      {{kSmallest, -4 * kSmallest}, -3 * kSmallest},
      {{0x1p-1022, -kSmallest}, std::nextafter(0x1p-1022, 0)},
      {{0x1.fffffffffffffp-1022, kSmallest}, 0x1p-1021},
      // Ties, and nearly.
      {{1, 0x1p-53}, 1},
      {{1, 0x1p-53, kSmallest}, 1 + 0x1p-52},
      {{1, 0x1p-53, -kSmallest}, 1},
      {{1 + 0x1p-52, 0x1p-53}, 1 + 0x1p-51},
      {{-1, -0x1p-52, -0x1p-53}, -1 - 0x1p-51},
      {{-1, -0x1p-53, -kSmallest}, -1 - 0x1p-52},
      {{0x1p53, 1}, 0x1p53},
      {{0x1p53, 1, 0x1p-500}, 0x1p53 + 2},
      // Above the largest.
      {{kLargest, 0x1p969}, kLargest},
      {{kLargest, 0x1p970}, kInfinity},
      {{-kLargest, -kLargest}, -kInfinity},
  };
  for (const auto& [values, sum] : kSums) EXPECT_EQ(sum_of(values).value(), sum) << testing::PrintToString(values);
  EXPECT_FALSE(std::signbit(sum_of({-0.0, 0.0}).value()));
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
  Values values = wild_values(3000, 2);
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
  ExactSum taken_back = ExactSum::of(expected);
  for (const double value : values) taken_back.add(-value);
  EXPECT_EQ(taken_back.digits(), ExactSum::Digits{});
}

TEST(ExactSum, HasRoomForTwoToThe64OfTheLargest) {
  const auto many = [](double value) {
    ExactSum sum = sum_of({value});
    for (int i = 0; i < 64; ++i) sum.add(ExactSum(sum));
    return sum;
  };
  ExactSum sum = many(-kLargest);
  EXPECT_EQ(sum.value(), -kInfinity);
  sum.add(many(kLargest));
  sum.add(1);
  EXPECT_EQ(sum.value(), 1);
}

Tally tally_of(const Values& values) {
  Tally tally;
  for (const double value : values) tally.add(value);
  return tally;
}

// What one LP out of many would report.
Report report_of(double value) {
  Report report;
  report.count("events", static_cast<std::int64_t>(value) % 1000);
  report.sum("work", value);
  report.tally("delay", tally_of({value, -value / 3}));
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
    EXPECT_EQ(number.least, other.least);
    EXPECT_EQ(number.most, other.most);
  }
  EXPECT_EQ(a.digest(), b.digest());
}

TEST(Report, AddsUpByName) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  Report report;
  for (const std::int64_t value : {3, -1}) report.count("calls", value);
  for (const std::int64_t value : {kMost, 1l, -1l}) report.count("wrapped", value);
  for (const double value : {0.5, 1e308, -1e308}) report.sum("waiting", value);
  report.tally("delay", tally_of({2, 7, 3}));
  report.tally("delay", Tally());

  EXPECT_EQ(report.count_of("calls"), 2);
  EXPECT_EQ(report.count_of("wrapped"), kMost);
  EXPECT_EQ(report.sum_of("waiting"), 0.5);
  EXPECT_EQ(report.at("delay").count, 3);
  EXPECT_EQ(report.at("delay").mean(), 4);
  EXPECT_EQ(report.at("delay").least, 2);
  EXPECT_EQ(report.at("delay").most, 7);
  ASSERT_EQ(report.numbers().size(), 4u);
  EXPECT_EQ(report.numbers()[2].name, "waiting");
}

TEST(Report, RefusesUnknownNamesAndOneNameForTwoKinds) {
  Report report;
  EXPECT_EQ(report.find("calls"), nullptr);
  EXPECT_THROW(report.at("calls"), Error);
  report.count("calls", 1);
  EXPECT_THROW(report.sum("calls", 1), Error);
  EXPECT_THROW(report.tally("calls", Tally()), Error);
  Report other;
  other.sum("calls", 1);
  EXPECT_THROW(report.merge(other), Error);
}

TEST(Report, RefusesWhatIsNotFinite) {
  for (const double value : {kInfinity, -kInfinity, std::nan("")}) {
    Report report;
    EXPECT_THROW(report.sum("work", value), Error);
    EXPECT_THROW(report.tally("delay", tally_of({1, value})), Error);
    EXPECT_TRUE(report.numbers().empty());
  }
}

TEST(Report, OrderOfMergesDoesNotMatter) {
  Values values = wild_values(200, 6);
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

// Two zeros are equal, but their bits are not, which the digest would see.
TEST(Report, ZeroHasOneSign) {
  for (const Values& zeros : {Values{0.0, -0.0}, Values{-0.0, 0.0}}) {
    Report report;
    for (const double zero : zeros) report.tally("delay", tally_of({zero}));
    EXPECT_FALSE(std::signbit(report.at("delay").least));
    EXPECT_FALSE(std::signbit(report.at("delay").most));
  }
}

TEST(Report, DigestSeesEveryValueExactlyAndNoOrderOfNames) {
  std::set<std::uint64_t> digests;
  const std::function<void(Report&)> kChanges[] = {
      [](Report&) {},
      [](Report& report) { report.count("events", 1); },
      [](Report& report) { report.sum("work", kSmallest); },
      // Of the same counts and sums, others have another least or another most.
      [](Report& report) { report.tally("delay", tally_of({-50, 50, 0, 0})); },
      [](Report& report) { report.tally("delay", tally_of({-60, 50, 10, 0})); },
      [](Report& report) { report.tally("delay", tally_of({-50, 60, -10, 0})); },
      [](Report& report) { report.tally("never", tally_of({1, -1})); },
      [](Report& report) { report.count("other", 0); },
      [](Report& report) { report.count("another", 0); },
      [](Report& report) { report.sum("other", 0); },
  };
  for (const auto& change : kChanges) {
    Report report = example();
    change(report);
    EXPECT_TRUE(digests.insert(report.digest()).second) << "change " << digests.size();
  }
  Report forth, back;
  for (int value : {1, 2}) forth.count(std::to_string(value), value);
  for (int value : {2, 1}) back.count(std::to_string(value), value);
  EXPECT_EQ(forth.digest(), back.digest());
}

TEST(Report, BytesGiveItBack) {
  for (const Report& report : {Report(), example(), report_of(-1.7e308), report_of(kSmallest)}) {
    Report copy = Report::read(report.write()), more = report;
    expect_same(copy, report);
    EXPECT_EQ(copy.write(), report.write());
    for (Report* to : {&copy, &more}) to->merge(report_of(3));
    expect_same(copy, more);
  }
}

TEST(Report, RefusesBytesOfAnotherLength) {
  Report report;
  report.count("calls", 1);
  std::vector<std::byte> bytes = report.write();
  bytes.push_back(std::byte{0});
  EXPECT_THROW(Report::read(bytes), Error);
  for (bytes.resize(bytes.size() - 2); !bytes.empty(); bytes.pop_back()) EXPECT_THROW(Report::read(bytes), Error);
}

// Offsets: size of name 0, kind 4, first use 8, count 16, least 24, most 32, digits from 40 on.
TEST(Report, RefusesDamagedBytes) {
  Report report;
  report.tally("delay", tally_of({1}));
  const std::vector<std::byte> bytes = report.write();
  const auto damaged = [&](std::size_t offset, const auto& value) {
    std::vector<std::byte> copy = bytes;
    const auto* start = reinterpret_cast<const std::byte*>(&value);
    std::copy(start, start + sizeof value, copy.begin() + static_cast<std::ptrdiff_t>(offset));
    return copy;
  };
  EXPECT_NO_THROW(Report::read(damaged(24, 0.5)));
  EXPECT_THROW(Report::read(damaged(0, ~std::uint32_t{0})), Error);
  EXPECT_THROW(Report::read(damaged(4, std::uint32_t{3})), Error);
  EXPECT_THROW(Report::read(damaged(4, std::uint32_t{256})), Error);
  EXPECT_THROW(Report::read(damaged(24, std::nan(""))), Error);
  EXPECT_THROW(Report::read(damaged(24, 2.0)), Error);
  EXPECT_THROW(Report::read(damaged(32, kInfinity)), Error);
  EXPECT_THROW(Report::read(damaged(40, std::int64_t{-1})), Error);
  EXPECT_THROW(Report::read(damaged(40, std::int64_t{1} << 32)), Error);
  EXPECT_THROW(Report::read(damaged(40 + 67 * 8, std::numeric_limits<std::int64_t>::max())), Error);
  std::vector<std::byte> twice = bytes;
  twice.insert(twice.end(), bytes.begin(), bytes.end());
  EXPECT_THROW(Report::read(twice), Error);
}

std::vector<std::string> names_of(const Report& report) {
  std::vector<std::string> names;
  for (const Report::Number& number : report.numbers()) names.push_back(number.name);
  return names;
}

// Which LPs are on which rank must not show.
TEST(Report, NamesStandInTheOrderOfTheLpsThatUseThem) {
  Report here, there, ended;
  for (const char* name : {"z", "later", "a"}) ended.count(name, 1);
  ended.stand_behind();
  here.asks(7);
  for (const char* name : {"later", "d", "c"}) here.count(name, 1);
  there.asks(3);
  for (const char* name : {"b", "c", "e"}) there.count(name, 1);
  there.asks(9);
  for (const char* name : {"d", "f"}) there.count(name, 1);
  here.merge(ended);
  here.merge(Report::read(there.write()));
  here.sort();
  EXPECT_EQ(names_of(here), (std::vector<std::string>{"b", "c", "e", "later", "d", "f", "a", "z"}));
}

}  // namespace
}  // namespace pdes

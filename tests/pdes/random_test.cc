#include "pdes/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

namespace pdes {
namespace {

using Words = std::vector<std::uint64_t>;

Words draw(std::uint64_t state, std::uint64_t step, Generator generator, std::size_t count) {
  Stream stream;
  stream.state = state;
  stream.step = step;
  Words words(count);
  for (std::uint64_t& word : words) word = Random(stream, generator).bits();
  return words;
}

// ---- Nobody's results must change with a C library, fused multiply-add, or a version that does not say so: known answers.

TEST(Splitmix, KnownAnswers) {
  constexpr std::uint64_t kPublishedStep = 0x9e3779b97f4a7c15;
  EXPECT_EQ(draw(1234567, kPublishedStep, Generator::splitmix, 3),
            (Words{6457827717110365317u, 3203168211198807973u, 9817491932198370423u}));
  EXPECT_EQ(draw(0, kPublishedStep, Generator::splitmix, 2), (Words{0xe220a8397b1dcdafu, 0x6e789e6aa1b965f4u}));
}

// Both halves of the blocks with the counters (1, 0) and (3, 0), from section 3.3 of the paper.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(draw(0x243f6a8885a308d3, 1, Generator::philox, 4),
            (Words{0xf3b735d04a96f06fu, 0x0b141c7c0d18f664u, 0xbd7c1336ffd23417u, 0xaed0aa42d8acb916u}));
}

TEST(Stream, KnownAnswers) {
  const Stream stream(1, 2, 3);
  EXPECT_EQ(stream.state, 0x706f8c7a5ebee70cu);
  EXPECT_EQ(stream.step, 0xe4b3bcc54509b07du);
}

TEST(Exponential, KnownAnswers) {
  Stream stream(1, 2, 3);
  Random random(stream, Generator::splitmix);
  std::uint64_t digest = 0;
  for (int i = 0; i < 100'000; ++i) digest = mix(digest ^ std::bit_cast<std::uint64_t>(random.exponential(0.9)));
  EXPECT_EQ(digest, 5878182039877631241u);
}

// ---- Streams.

TEST(Stream, StepIsOddAndMixes) {
  for (LpId lp = 0; lp < 100'000; ++lp) {
    const std::uint64_t step = Stream(lp % 3, lp, lp % 5).step;
    ASSERT_EQ(step % 2, 1u);
    ASSERT_GE(std::popcount(step ^ step >> 1), 24) << lp;
  }
}

TEST(Stream, AllOfASeedDiffer) {
  std::set<std::uint64_t> states, steps;
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    const Stream stream(42, i / 10, i % 10);
    states.insert(stream.state);
    steps.insert(stream.step);
  }
  for (std::uint64_t seed = 100; seed < 10'100; ++seed) states.insert(Stream(seed, 0, 0).state);
  EXPECT_EQ(states.size(), 110'000u);
  EXPECT_EQ(steps.size(), 100'000u);
}

// ---- Distributions.  Bounds are four standard errors.

class Draws : public testing::TestWithParam<Generator> {
 protected:
  // As Kolmogorov and Smirnov measure it; 1.95 is exceeded once in a thousand times.
  template <class Distribution>
  static double distance(std::vector<double> values, Distribution distribution) {
    std::sort(values.begin(), values.end());
    const auto n = static_cast<double>(values.size());
    double most = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double expected = distribution(values[i]), below = static_cast<double>(i) / n;
      most = std::max({most, expected - below, below + 1 / n - expected});
    }
    return most * std::sqrt(n);
  }

  Stream stream_{1, 17, 0};
  Random random_{stream_, GetParam()};
};

TEST_P(Draws, UniformAndExponentialHaveTheirDistributions) {
  const double mean = 2.5;
  std::vector<double> uniform(200'000), exponential(200'000);
  for (double& value : uniform) {
    value = random_.uniform();
    ASSERT_TRUE(value >= 0 && value < 1 && std::ldexp(value, 53) == std::floor(std::ldexp(value, 53)));
  }
  for (double& value : exponential) {
    value = random_.exponential(mean);
    ASSERT_GE(value, 0);
  }
  EXPECT_LT(distance(uniform, [](double x) { return x; }), 1.95);
  EXPECT_LT(distance(exponential, [&](double x) { return -std::expm1(-x / mean); }), 1.95);
}

// A fault in a layer is small beside the whole.  Chi-square of k classes has mean k - 1 and variance 2 (k - 1).
TEST_P(Draws, ExponentialHasItsShareOfEachLayer) {
  constexpr int kDraws = 4'000'000;
  std::vector<double> bounds(kLayerEdges.rbegin(), kLayerEdges.rend() - 1);  // from 0 to where the tail begins
  for (int i = 0; i < 3; ++i) bounds.push_back(bounds.back() + 1);
  std::vector<double> counts(bounds.size());
  for (int i = 0; i < kDraws; ++i) {
    const auto above = std::upper_bound(bounds.begin(), bounds.end(), random_.exponential(1));
    ++counts[static_cast<std::size_t>(above - bounds.begin()) - 1];
  }
  bounds.push_back(INFINITY);
  double chi_square = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double expected = kDraws * (std::exp(-bounds[i]) - std::exp(-bounds[i + 1]));
    chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  const auto freedom = static_cast<double>(counts.size() - 1);
  EXPECT_LE(std::fabs(chi_square - freedom), 4 * std::sqrt(2 * freedom));
}

TEST_P(Draws, ChanceIsAShareOfTheDraws) {
  int hits = 0;
  for (int i = 0; i < 100'000; ++i) {
    hits += random_.chance(0.25);
    ASSERT_FALSE(random_.chance(0));
    ASSERT_TRUE(random_.chance(1));
  }
  EXPECT_NEAR(hits, 25'000, 4 * std::sqrt(100'000 * 0.25 * 0.75));
}

TEST_P(Draws, IntegerIsUnbiasedAndReachesAllBits) {
  for (const std::uint64_t n : {1, 2, 3, 7, 64, 1000}) {
    std::vector<double> counts(n);
    for (std::uint64_t i = 0; i < 500 * n; ++i) {
      const std::uint64_t drawn = random_.integer(n);
      ASSERT_LT(drawn, n);
      ++counts[drawn];
    }
    double chi_square = 0;
    for (const double count : counts) chi_square += (count - 500) * (count - 500) / 500;
    const auto freedom = static_cast<double>(n - 1);
    EXPECT_LE(std::fabs(chi_square - freedom), 4 * std::sqrt(2 * freedom)) << n;
  }
  std::uint64_t any = 0;
  for (int i = 0; i < 1000; ++i) any |= random_.integer(~std::uint64_t{0});
  EXPECT_EQ(any, ~std::uint64_t{0});
}

// Of one LP and the next, of two streams of an LP, under two seeds, and of one draw and the next.
TEST_P(Draws, NeighboursAreUnrelated) {
  double sums[4] = {};  // of products of two independent numbers of mean 0 and variance 1
  std::vector<double> first;
  constexpr int kLps = 2000, kEach = 50;
  for (LpId lp = 0; lp < kLps; ++lp) {
    Stream streams[] = {{1, lp, 0}, {1, lp + 1, 0}, {1, lp, 1}, {2, lp, 0}};
    const auto draw = [&](int of) { return (Random(streams[of], GetParam()).uniform() - 0.5) * std::sqrt(12); };
    double before = 0;
    for (int i = 0; i < kEach; ++i) {
      const double own = draw(0);
      for (int other : {1, 2, 3}) sums[other] += own * draw(other);
      sums[0] += own * std::exchange(before, own);
      if (i == 0) first.push_back(own);
    }
  }
  for (double sum : sums) EXPECT_LT(std::fabs(sum), 4 * std::sqrt(kLps * kEach));
  EXPECT_LT(distance(first, [](double x) { return x / std::sqrt(12) + 0.5; }), 1.95);
}

INSTANTIATE_TEST_SUITE_P(, Draws, testing::Values(Generator::splitmix, Generator::philox),
                         [](const auto& tested) { return tested.param == Generator::splitmix ? "Splitmix" : "Philox"; });

// ---- The logarithm.

double error(double x) {
  const long double exact = std::log(static_cast<long double>(x));
  return static_cast<double>(std::fabs((natural_log(x) - exact) / exact));
}

TEST(NaturalLog, IsAccurate) {
  double worst = 0;
  Stream stream(1, 0, 0);
  Random random(stream, Generator::splitmix);
  for (int i = 1; i < 1'000'000; ++i) {
    worst = std::max({worst, error(i * 1e-6), error(1 - random.uniform()), error(1 - random.uniform() * 0x1p-6)});
  }
  for (int power = 1; power <= 53; ++power)
    worst = std::max({worst, error(1 - std::ldexp(1, -power)), error(std::ldexp(1, -power))});
  EXPECT_LE(worst, 0x1p-50);
  EXPECT_EQ(natural_log(1), 0);
}

}  // namespace
}  // namespace pdes

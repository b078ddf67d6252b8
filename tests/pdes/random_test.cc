#include "pdes/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <set>
#include <vector>

namespace pdes {
namespace {

using Words = std::vector<std::uint64_t>;

Stream stream_at(std::uint64_t state, std::uint64_t step) {
  Stream stream;
  stream.state = state;
  stream.step = step;
  return stream;
}

Words draw(Stream stream, Generator generator, std::size_t count) {
  Random random(stream, generator);
  Words words(count);
  std::generate(words.begin(), words.end(), [&] { return random.bits(); });
  return words;
}

// Philox2x64-10 as the paper defines it (section 3.3), to compare with.
std::array<std::uint64_t, 2> philox(std::uint64_t left, std::uint64_t right, std::uint64_t key) {
  for (int round = 0; round < 10; ++round, key += 0x9e3779b97f4a7c15) {
    const auto product = static_cast<unsigned __int128>(0xd2b74407b1ce6e93) * left;
    left = static_cast<std::uint64_t>(product >> 64) ^ key ^ right;
    right = static_cast<std::uint64_t>(product);
  }
  return {left, right};
}

TEST(Splitmix, KnownAnswers) {
  constexpr std::uint64_t kPublishedStep = 0x9e3779b97f4a7c15;
  EXPECT_EQ(draw(stream_at(1234567, kPublishedStep), Generator::splitmix, 3),
            (Words{6457827717110365317u, 3203168211198807973u, 9817491932198370423u}));
  EXPECT_EQ(draw(stream_at(0, kPublishedStep), Generator::splitmix, 2), (Words{0xe220a8397b1dcdafu, 0x6e789e6aa1b965f4u}));
}

// The vectors are those that Random123 publishes: counter, key, block.
TEST(Philox, KnownAnswers) {
  using Block = std::array<std::uint64_t, 2>;
  constexpr std::uint64_t kOnes = ~std::uint64_t{0};
  EXPECT_EQ(philox(0, 0, 0), (Block{0xca00a0459843d731u, 0x66c24222c9a845b5u}));
  EXPECT_EQ(philox(kOnes, kOnes, kOnes), (Block{0x65b021d60cd8310fu, 0x4d02f3222f86df20u}));
  EXPECT_EQ(philox(0x243f6a8885a308d3u, 0x13198a2e03707344u, 0xa4093822299f31d0u),
            (Block{0x0a5e742c2997341cu, 0xb0f883d38000de5du}));
}

TEST(Philox, DrawsAreBothHalvesOfEachBlock) {
  const Stream stream(7, 5, 1);
  Words expected;
  for (std::uint64_t counter = stream.step; expected.size() < 100; counter += 2) {
    for (const std::uint64_t half : philox(counter, 0, stream.state)) expected.push_back(half);
  }
  EXPECT_EQ(draw(stream, Generator::philox, 100), expected);
}

// Nobody's results must change with a new version.
TEST(Stream, KnownAnswers) {
  const Stream stream(1, 2, 3);
  EXPECT_EQ(stream.state, 0x706f8c7a5ebee70cu);
  EXPECT_EQ(stream.step, 0xe4b3bcc54509b07du);
}

TEST(Stream, StepIsOddAndMixes) {
  for (LpId lp = 0; lp < 100'000; ++lp) {
    const std::uint64_t step = Stream(lp % 3, lp, lp % 5).step;
    ASSERT_EQ(step % 2, 1u);
    ASSERT_GE(std::popcount(step ^ step >> 1), 24) << lp;
  }
}

TEST(Stream, AllOfASeedDiffer) {
  std::set<std::uint64_t> states, steps;
  for (LpId lp = 0; lp < 10'000; ++lp) {
    for (std::uint32_t number = 0; number < 10; ++number) {
      states.insert(Stream(42, lp, number).state);
      steps.insert(Stream(42, lp, number).step);
    }
  }
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) states.insert(Stream(seed + 100, 0, 0).state);
  EXPECT_EQ(states.size(), 110'000u);
  EXPECT_EQ(steps.size(), 100'000u);
}

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
  static double uniformity(const std::vector<double>& values) {
    return distance(values, [](double x) { return x; });
  }
  static double correlation(const std::vector<double>& a, const std::vector<double>& b) {
    double ab = 0;
    for (std::size_t i = 0; i < a.size(); ++i) ab += (a[i] - 0.5) * (b[i] - 0.5) * 12;
    return ab / std::sqrt(static_cast<double>(a.size()));  // about normal, variance 1
  }

  Stream stream_{1, 17, 0};
  Random random_{stream_, GetParam()};
};

TEST_P(Draws, UniformIsEvenAndInRange) {
  std::vector<double> values(200'000);
  for (double& value : values) {
    value = random_.uniform();
    ASSERT_TRUE(value >= 0 && value < 1);
    ASSERT_EQ(std::ldexp(value, 53), std::floor(std::ldexp(value, 53)));
  }
  EXPECT_LT(uniformity(values), 1.95);
}

TEST_P(Draws, ChanceIsAShareOfTheDraws) {
  int hits = 0;
  for (int i = 0; i < 100'000; ++i) hits += random_.chance(0.25);
  EXPECT_NEAR(hits, 25'000, 4 * std::sqrt(100'000 * 0.25 * 0.75));
  for (int i = 0; i < 1000; ++i) {
    ASSERT_FALSE(random_.chance(0));
    ASSERT_TRUE(random_.chance(1));
  }
}

// Chi-square of k classes has mean k - 1 and variance 2 (k - 1).
TEST_P(Draws, IntegerIsUnbiased) {
  for (const std::uint64_t n : {1, 2, 3, 7, 64, 1000}) {
    std::vector<double> counts(n);
    const double expected = 500;
    for (std::uint64_t i = 0; i < 500 * n; ++i) {
      const std::uint64_t drawn = random_.integer(n);
      ASSERT_LT(drawn, n);
      ++counts[drawn];
    }
    double chi_square = 0;
    for (const double count : counts) chi_square += (count - expected) * (count - expected) / expected;
    const auto freedom = static_cast<double>(n - 1);
    EXPECT_LE(std::fabs(chi_square - freedom), 4 * std::sqrt(2 * freedom)) << n;
  }
}

TEST_P(Draws, IntegerReachesAllBits) {
  std::uint64_t any = 0;
  for (int i = 0; i < 1000; ++i) any |= random_.integer(~std::uint64_t{0});
  EXPECT_EQ(any, ~std::uint64_t{0});
}

TEST_P(Draws, ExponentialHasItsDistribution) {
  const double mean = 2.5;
  std::vector<double> values(200'000);
  double sum = 0, squares = 0;
  for (double& value : values) {
    value = random_.exponential(mean);
    ASSERT_TRUE(value >= 0 && value <= mean * 53 * std::log(2) * (1 + 1e-15));
    sum += value;
    squares += value * value;
  }
  const auto n = static_cast<double>(values.size());
  const double found = sum / n, variance = squares / n - found * found;
  EXPECT_NEAR(found, mean, 4 * mean / std::sqrt(n));
  EXPECT_NEAR(variance, mean * mean, 4 * mean * mean * std::sqrt(8 / n));
  EXPECT_LT(distance(values, [&](double x) { return -std::expm1(-x / mean); }), 1.95);
}

TEST_P(Draws, NeighboursAreUnrelated) {
  constexpr std::size_t kLps = 2000, kEach = 50;
  const auto of = [&](std::uint64_t seed, LpId lp, std::uint32_t number) {
    Stream stream(seed, lp, number);
    Random random(stream, GetParam());
    std::vector<double> values(kEach);
    for (double& value : values) value = random.uniform();
    return values;
  };
  std::vector<double> own, next_lp, next_number, next_seed, first;
  const auto append = [](std::vector<double>& to, const std::vector<double>& more) {
    to.insert(to.end(), more.begin(), more.end());
  };
  for (LpId lp = 0; lp < kLps; ++lp) {
    append(own, of(1, lp, 0));
    append(next_lp, of(1, lp + 1, 0));
    append(next_number, of(1, lp, 1));
    append(next_seed, of(2, lp, 0));
    first.push_back(own[lp * kEach]);
  }
  EXPECT_LT(std::fabs(correlation(own, next_lp)), 4);
  EXPECT_LT(std::fabs(correlation(own, next_number)), 4);
  EXPECT_LT(std::fabs(correlation(own, next_seed)), 4);
  EXPECT_LT(uniformity(first), 1.95);
  // One draw after the other, over all LPs in turn.
  EXPECT_LT(std::fabs(correlation({own.begin(), own.end() - 1}, {own.begin() + 1, own.end()})), 4);
}

INSTANTIATE_TEST_SUITE_P(, Draws, testing::Values(Generator::splitmix, Generator::philox),
                         [](const auto& tested) { return tested.param == Generator::splitmix ? "Splitmix" : "Philox"; });

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
  EXPECT_LE(worst, 0x1p-50);
}

TEST(NaturalLog, IsAccurateNearOneAndAtTheSmallest) {
  EXPECT_EQ(natural_log(1), 0);
  for (int power = 1; power <= 53; ++power) {
    EXPECT_LE(error(1 - std::ldexp(1, -power)), 0x1p-50) << power;
    EXPECT_LE(error(std::ldexp(1, -power)), 0x1p-50) << power;
  }
  EXPECT_EQ(natural_log(1 - 0x1p-53), -0x1p-53);
}

// To the last bit: no C library, no fused multiply-add may change a result.
TEST(Exponential, KnownAnswers) {
  Stream stream(1, 2, 3);
  Random random(stream, Generator::splitmix);
  std::uint64_t digest = 0;
  for (int i = 0; i < 100'000; ++i) digest = mix(digest ^ std::bit_cast<std::uint64_t>(random.exponential(0.9)));
  EXPECT_EQ(digest, 14101653698999985669u);
}

}  // namespace
}  // namespace pdes

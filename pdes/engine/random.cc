#include "pdes/random.h"

#include <Random123/philox.h>

#include <array>
#include <bit>

namespace pdes {
namespace {

// ln(a / b) for a / b in [1/2, 2], as 2 artanh((a - b) / (a + b)), with integers only, in units of 2^-100, so that
// every compiler gets the same result.
constexpr double log_of_ratio(int a, int b) {
  const int up = (a - b) * (a - b), down = (a + b) * (a + b);
  __int128 power = (__int128{1} << 100) * (a - b) / (a + b), sum = 0;
  for (int n = 1; power != 0; n += 2, power = power * up / down) sum += power / n;
  return static_cast<double>(sum) * 0x1p-99;
}

// Doubles from 11/16 to 11/8 that are 8 bits long: x is 2^k times one of these, times 1 + r, where |r| <= 2^-8.
constexpr std::uint64_t kFirst = std::bit_cast<std::uint64_t>(0.6875), kSpacing = std::uint64_t{1} << 45;
struct Anchor {
  double inverse, log;
};
constexpr auto kAnchors = [] {
  std::array<Anchor, 129> anchors{};
  for (std::size_t i = 0; i < anchors.size(); ++i) {
    const auto anchor = std::bit_cast<double>(kFirst + i * kSpacing);
    anchors[i] = {1 / anchor, log_of_ratio(static_cast<int>(anchor * 256), 256)};
  }
  return anchors;
}();
constexpr double kLog2 = log_of_ratio(2, 1);

// Near 1 both k and the anchor's logarithm are 0, and r is exact: nothing cancels.
inline double logarithm(double x) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const auto k = static_cast<std::int64_t>(bits - kFirst) >> 52;
  const std::uint64_t scaled = bits - (static_cast<std::uint64_t>(k) << 52);
  const std::uint64_t up = scaled + kSpacing / 2;
  const Anchor& anchor = kAnchors[(up - kFirst) / kSpacing];
  const double r = (std::bit_cast<double>(scaled) - std::bit_cast<double>(up & ~(kSpacing - 1))) * anchor.inverse;
  const double r2 = r * r;
  const double series = (-1.0 / 2 + r * (1.0 / 3)) + r2 * ((-1.0 / 4 + r * (1.0 / 5)) + r2 * (-1.0 / 6 + r * (1.0 / 7)));
  return (static_cast<double>(k) * kLog2 + anchor.log) + (r + r2 * series);
}

}  // namespace

double natural_log(double x) noexcept { return logarithm(x); }
double Random::exponential(double mean) noexcept { return -mean * logarithm(1 - uniform()); }

std::uint64_t Random::philox() noexcept {
  const std::uint64_t place = stream_.step++;
  if (place % 2 == 0) return stream_.spare;
  const auto block = r123::Philox2x64{}({{place, 0}}, {{stream_.state}});
  stream_.spare = block[1];
  return block[0];
}

}  // namespace pdes

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
constexpr double logarithm(double x) noexcept {
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

// ---- The layers under e^-x, all of one area.  Layer 0 is as high as the curve is at kTail, and its area includes all that the
// curve has beyond.  A layer i above it reaches from x = 0 to edges[i], and from e^-edges[i] up to e^-edges[i + 1].

constexpr double kTail = 7.69711747013104972;              // of 256 layers (Marsaglia and Tsang)
constexpr double kHeightOfTail = 4.541343538414965908e-4;  // e^-kTail
constexpr double kArea = (kTail + 1) * kHeightOfTail;
struct Layers {
  std::array<double, 257> edges{kArea / kHeightOfTail, kTail};
  std::array<double, 257> floors{0, kHeightOfTail};
};
constexpr Layers kLayers = [] {
  Layers layers;
  for (std::size_t i = 1; i < 256; ++i) {
    layers.floors[i + 1] = layers.floors[i] + kArea / layers.edges[i];
    if (i < 255) layers.edges[i + 1] = -logarithm(layers.floors[i + 1]);
  }
  return layers;
}();
static_assert(kLayers.floors[256] > 1 - 0x1p-46 && kLayers.floors[256] < 1 + 0x1p-46);

}  // namespace

constexpr std::array<double, 257> kLayerEdges = kLayers.edges;

double natural_log(double x) noexcept { return logarithm(x); }

// Not inline, or a model's compiler might fuse the product with a sum around it, and other results follow.
double Random::exponential(double mean) noexcept { return mean * exponential_of(bits()); }

double Random::exponential_of(std::uint64_t bits) noexcept {
  const std::size_t layer = bits % 256;
  const double x = static_cast<double>(bits >> 11) * 0x1p-53 * kLayers.edges[layer];
  if (x < kLayers.edges[layer + 1]) [[likely]]
    return x;
  return beyond_edge(layer, x);
}

// Beyond kTail the curve looks as it does from 0 on; between two edges a point is drawn, which must lie under the curve.
double Random::beyond_edge(std::size_t layer, double x) noexcept {
  if (layer == 0) return kTail + exponential(1);
  const double floor = kLayers.floors[layer], y = floor + uniform() * (kLayers.floors[layer + 1] - floor);
  return logarithm(y) < -x ? x : exponential(1);
}

std::uint64_t Random::philox() noexcept {
  const std::uint64_t place = stream_.step++;
  if (place % 2 == 0) return stream_.spare;
  const auto block = r123::Philox2x64{}({{place, 0}}, {{stream_.state}});
  stream_.spare = block[1];
  return block[0];
}

}  // namespace pdes

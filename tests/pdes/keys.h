// Keys for tests of the pending event set: times of many shapes, each key with a tie of its own.
#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "pdes/event.h"

namespace pdes::test {

enum class Shape { uniform, exponential, ties, few_times, pareto, two_peaks, far, one };
inline constexpr Shape kShapes[] = {Shape::uniform, Shape::exponential, Shape::ties, Shape::few_times,
                                    Shape::pareto,  Shape::two_peaks,   Shape::far,  Shape::one};

inline double delay(Shape shape, std::mt19937_64& random) {
  double u = std::uniform_real_distribution<>(0, 1)(random);
  switch (shape) {
    case Shape::uniform: return u;
    case Shape::exponential: return -std::log(1 - u);
    case Shape::ties: return 1;
    case Shape::few_times: return 1 + std::floor(u * 4);
    case Shape::pareto: return std::pow(1 - u, -1.2);
    case Shape::two_peaks: return u < 0.5 ? u * 1e-3 : 1000 + u;
    case Shape::far: return std::exp(u * 30);
    case Shape::one: return 0;
  }
  return 0;
}

inline std::vector<Key> keys(Shape shape, std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Key> made;
  for (std::size_t i = 0; i < count; ++i) made.push_back({delay(shape, random), random() % 7 << 32 | i, nullptr});
  return made;
}

}  // namespace pdes::test

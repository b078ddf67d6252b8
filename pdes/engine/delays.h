// Measures delays of events between LPs.  Each thread has one; they are merged at the end, in any order.  Trivially
// copyable, so that ranks can send theirs as bytes.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "pdes/result.h"

namespace pdes {

class DelayRecorder {
 public:
  // Buckets are indexed by the exponent and the first five bits of the mantissa, from 2^-32 to 2^32; the first and the
  // last bucket also take what lies beyond.
  static constexpr int kBucketsPerOctave = 32, kOctaves = 64, kMinExponent = -32;
  static constexpr int kBuckets = kOctaves * kBucketsPerOctave;

  void add(double delay) noexcept {  // finite, at least 0
    ++histogram_[bucket_of(delay)];
    sum_.add(delay);
    smallest_ = std::min(smallest_, delay);
    largest_ = std::max(largest_, delay);
  }
  void merge(const DelayRecorder& other) noexcept;
  Delays result() const;

 private:
  static std::size_t bucket_of(double delay) noexcept {
    constexpr auto kFirst = std::int64_t{1023 + kMinExponent} * kBucketsPerOctave;
    const auto place = static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(std::fabs(delay)) >> 47) - kFirst;
    return static_cast<std::size_t>(std::clamp<std::int64_t>(place, 0, kBuckets - 1));
  }

  std::array<std::uint64_t, kBuckets> histogram_{};
  ExactSum sum_;
  double smallest_ = std::numeric_limits<double>::infinity(), largest_ = 0;
};

}  // namespace pdes

// Measures delays of events between LPs.  Each thread has one; they are merged at the end, in any order.  Trivially
// copyable, so that ranks can send theirs as bytes.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "pdes/lp.h"
#include "pdes/result.h"

namespace pdes {

struct World;

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

// The same by link: from a class to a class, by a type of event.  Each thread has one.
class LinkRecorder {
 public:
  void add(const LpClass& from, const LpClass& to, std::uint16_t type, double delay) {
    seen_[{from.first, to.first, type}].add({1, delay});
  }
  struct Seen {
    std::uint64_t count = 0;
    double smallest = std::numeric_limits<double>::infinity();
    void add(const Seen& more) noexcept {
      count += more.count;
      smallest = std::min(smallest, more.smallest);
    }
  };
  // Named, because a name may have several classes.
  using Named = std::map<std::array<std::string, 3>, Seen>;
  void add_to(Named& named, const World& world) const;
  static std::vector<Delays::Link> sorted(const Named& named);

 private:
  std::map<std::array<LpId, 3>, Seen> seen_;  // first LPs of two classes, and the type
};

}  // namespace pdes

#include "engine/delays.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <type_traits>

#include "pdes/partition.h"

namespace pdes {

static_assert(std::is_trivially_copyable_v<DelayRecorder>);

void DelayRecorder::merge(const DelayRecorder& other) noexcept {
  for (std::size_t i = 0; i < kBuckets; ++i) histogram_[i] += other.histogram_[i];
  sum_.add(other.sum_);
  smallest_ = std::min(smallest_, other.smallest_);
  largest_ = std::max(largest_, other.largest_);
}

Delays DelayRecorder::result() const {
  Delays delays;
  delays.count = std::accumulate(histogram_.begin(), histogram_.end(), std::uint64_t{0});
  delays.histogram.assign(histogram_.begin(), histogram_.end());
  if (delays.count == 0) return delays;
  delays.smallest = smallest_;
  delays.mean = sum_.value() / static_cast<double>(delays.count);
  delays.largest = largest_;
  return delays;
}

double suggested_lookahead(double smallest) {
  if (!(smallest > 0) || !std::isfinite(smallest)) return 0;
  char rounded[32];  // two digits, at most half a step above what was seen
  std::snprintf(rounded, sizeof rounded, "%.1e", smallest);
  int digits = 10 * (rounded[0] - '0') + (rounded[2] - '0'), exponent = std::atoi(rounded + 4);
  const auto number = [&] {
    return std::strtod((std::to_string(digits) + "e" + std::to_string(exponent - 1)).c_str(), nullptr);
  };
  if (number() > smallest && --digits < 10) digits = 99, --exponent;
  return number();
}

void LinkRecorder::add_to(Named& named, const World& world) const {
  for (const auto& [link, seen] : seen_)
    named[{world.class_of(link[0]).name, world.class_of(link[1]).name, world.types[link[2]].name}].add(seen);
}

std::vector<Delays::Link> LinkRecorder::sorted(const Named& named) {
  std::vector<Delays::Link> links;
  for (const auto& [link, seen] : named) links.push_back({link[0], link[1], link[2], seen.count, seen.smallest});
  std::stable_sort(links.begin(), links.end(),
                   [](const Delays::Link& a, const Delays::Link& b) { return a.smallest < b.smallest; });
  return links;
}

double Delays::percentile(double p) const {
  const auto rank = p / 100 * static_cast<double>(count);
  std::uint64_t passed = 0;
  for (std::size_t i = 0; i < histogram.size(); ++i) {
    passed += histogram[i];
    if (passed == 0 || static_cast<double>(passed) < rank) continue;
    const auto bucket = static_cast<int>(i);
    const double middle = 1 + (bucket % DelayRecorder::kBucketsPerOctave + 0.5) / DelayRecorder::kBucketsPerOctave;
    const int exponent = DelayRecorder::kMinExponent + bucket / DelayRecorder::kBucketsPerOctave;
    return std::clamp(std::ldexp(middle, exponent), smallest, largest);
  }
  return largest;
}

}  // namespace pdes

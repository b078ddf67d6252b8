#include "engine/costs.h"

#include <algorithm>
#include <chrono>

namespace pdes {
namespace {

constexpr std::uint64_t kKnown = 64;  // events that tell what one costs
constexpr std::uint64_t kRemembered = 16384;
// One that took so many times as long as the mean was interrupted, most likely, and counts as so many.
constexpr std::uint64_t kInterrupted = 256;
constexpr double kAlike = 1.25;  // closer ones are one and the same: a clock is not more exact
constexpr double kHeaviest = 1 << 20;

std::uint64_t system_clock_ns() {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

double mean(const Timed& timed) { return static_cast<double>(timed.ns) / static_cast<double>(timed.events); }

// Whether what is known of these differs.
class Range {
 public:
  void add(const Timed& timed) {
    if (timed.events < kKnown) return;
    least_ = known_ ? std::min(least_, mean(timed)) : mean(timed);
    most_ = std::max(most_, mean(timed));
    known_ = true;
  }
  bool is_wide() const { return most_ > kAlike * least_; }

 private:
  bool known_ = false;
  double least_ = 0, most_ = 0;
};

Timed operator+(const Timed& a, const Timed& b) { return {a.events + b.events, a.ns + b.ns}; }

}  // namespace

EventTimer::EventTimer(std::size_t cells, std::uint64_t (*clock)())
    : clock_(clock != nullptr ? clock : system_clock_ns), timed_(cells) {}

void EventTimer::lap(std::size_t cell) {
  const std::uint64_t now = clock_();
  std::uint64_t ns = now - std::exchange(before_, now);
  Timed& timed = timed_[cell];
  if (timed.events >= kKnown) ns = std::min(ns, (timed.ns / timed.events + 1) * kInterrupted);
  timed = timed + Timed{1, ns};
}

void EventTimer::forget_half() {
  for (Timed& timed : timed_)
    if (timed.events > kRemembered) timed = {timed.events / 2, timed.ns / 2};
}

Weights::Weights(std::size_t classes, std::size_t types)
    : types_(types), weights_(classes * types, kUnit), before_(weights_), sums_(weights_.size()) {}

bool Weights::find(std::span<const Timed> of_threads) {
  std::fill(sums_.begin(), sums_.end(), Timed{});
  for (std::size_t i = 0; i < of_threads.size(); ++i) sums_[i % sums_.size()] = sums_[i % sums_.size()] + of_threads[i];
  Timed all;
  Range range;
  for (const Timed& sum : sums_) {
    all = all + sum;
    range.add(sum);
  }
  before_ = weights_;
  mean_ns_ = all.events > 0 ? mean(all) : 0;
  spread_ = 1;
  by_class_ = false;
  std::fill(weights_.begin(), weights_.end(), kUnit);
  if (range.is_wide()) {
    find_classes();
    find_types();
  }
  return weights_ != before_;
}

void Weights::find_classes() {
  for (std::size_t type = 0; type < types_; ++type) {
    Range range;
    for (std::size_t cell = type; cell < sums_.size(); cell += types_) range.add(sums_[cell]);
    by_class_ |= range.is_wide();
  }
  if (by_class_) return;
  for (std::size_t type = 0; type < types_; ++type) {
    Timed sum;
    for (std::size_t cell = type; cell < sums_.size(); cell += types_) sum = sum + sums_[cell];
    for (std::size_t cell = type; cell < sums_.size(); cell += types_) sums_[cell] = sum;
  }
}

void Weights::find_types() {
  double sum = 0, squares = 0, events = 0;
  for (std::size_t cell = 0; cell < sums_.size(); ++cell) {
    const Timed& timed = sums_[cell];
    if (timed.events < kKnown) continue;
    weights_[cell] = static_cast<std::uint32_t>(std::clamp(kUnit * mean(timed) / mean_ns_ + 0.5, 1.0, kHeaviest));
    const double weight = weights_[cell], times = static_cast<double>(timed.events);
    sum += times * weight;
    squares += times * weight * weight;
    events += times;
  }
  spread_ = squares * events / (sum * sum);
}

}  // namespace pdes

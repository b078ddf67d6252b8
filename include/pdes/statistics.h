// What an LP observes while it runs, and hands in at its end (pdes/report.h).  Each is used by its LP alone.  All but
// Histogram are trivially copyable, and so saved as they are; Histogram says how (pdes/checkpoint.h).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>

namespace pdes {

// Count, mean and extremes of observations.
class Tally {
 public:
  void add(double value) noexcept {
    ++count_;
    sum_ += value;
    if (value < min_) min_ = value;
    if (value > max_) max_ = value;
  }
  std::uint64_t count() const noexcept { return count_; }
  double sum() const noexcept { return sum_; }
  double least() const noexcept { return min_; }
  double most() const noexcept { return max_; }

 private:
  std::uint64_t count_ = 0;
  double sum_ = 0;
  double min_ = std::numeric_limits<double>::infinity(), max_ = -std::numeric_limits<double>::infinity();
};

// A number that stays what it is until it is changed, such as the length of a queue: mean over virtual time, and extremes.
class Level {
 public:
  explicit Level(double value = 0, double now = 0) noexcept
      : value_(value), began_(now), since_(now), least_(value), most_(value) {}

  void set(double now, double value) noexcept {
    area_ += value_ * (now - since_);
    since_ = now;
    value_ = value;
    if (value < least_) least_ = value;
    if (value > most_) most_ = value;
  }
  void add(double now, double change) noexcept { set(now, value_ + change); }
  // Forgets what has been, but for the present value: at the end of a warm-up.
  void restart(double now) noexcept { *this = Level(value_, now); }

  double value() const noexcept { return value_; }
  double least() const noexcept { return least_; }
  double most() const noexcept { return most_; }
  // Until `now`, and not before the last change.
  double time(double now) const noexcept { return (now > since_ ? now : since_) - began_; }
  double area(double now) const noexcept { return now > since_ ? area_ + value_ * (now - since_) : area_; }

 private:
  double value_, began_, since_, least_, most_, area_ = 0;
};

// How observations are spread: count, mean, extremes, and quantiles to 2 %.  It takes memory for each step of 3 % in which
// there is something.
class Histogram {
 public:
  using Buckets = std::map<std::int32_t, std::uint64_t>;

  void add(double value) {
    tally_.add(value);
    ++buckets_[bucket_of(value)];
  }
  const Tally& tally() const noexcept { return tally_; }

  // Buckets are numbered in the order of their values; each power of two has 32.
  static std::int32_t bucket_of(double value) noexcept {
    constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
    const auto bits = std::bit_cast<std::uint64_t>(value);
    const auto size = static_cast<std::int32_t>((bits & ~kSign) >> 47) + 1;
    return value == 0 ? 0 : (bits & kSign) != 0 ? -size : size;
  }
  static double middle_of(std::int32_t bucket) noexcept;
  const Buckets& buckets() const noexcept { return buckets_; }  // those that are not empty

  template <class A>
  void serialize(A& archive) {
    archive(tally_, buckets_);
  }

 private:
  Tally tally_;
  Buckets buckets_;
};

// The mean of observations that depend on those before them, as waiting times do, and how far it may be off: observations
// are taken together in batches, long enough that the means of these hardly depend on each other.
class BatchMeans {
 public:
  explicit BatchMeans(std::uint64_t size) noexcept : size_(size) {}  // observations in a batch, at least 1

  void add(double value) noexcept {
    open_ += value;
    if (++in_open_ < size_) return;
    const double mean = open_ / static_cast<double>(size_);
    ++batches_;
    sum_ += mean;
    squares_ += mean * mean;
    if (mean < least_) least_ = mean;
    if (mean > most_) most_ = mean;
    open_ = 0;
    in_open_ = 0;
  }
  std::uint64_t size() const noexcept { return size_; }
  std::uint64_t batches() const noexcept { return batches_; }  // complete ones; the others count for nothing
  double mean() const noexcept { return batches_ == 0 ? 0 : sum_ / static_cast<double>(batches_); }
  // The mean is within it, either way, with a confidence of 95 %; infinite below two batches.
  double half_width() const noexcept;
  double sum() const noexcept { return sum_; }  // of their means
  double squares() const noexcept { return squares_; }
  double least() const noexcept { return least_; }
  double most() const noexcept { return most_; }

 private:
  std::uint64_t size_, batches_ = 0, in_open_ = 0;
  double open_ = 0, sum_ = 0, squares_ = 0;
  double least_ = std::numeric_limits<double>::infinity(), most_ = -std::numeric_limits<double>::infinity();
};

}  // namespace pdes

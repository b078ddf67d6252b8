// Statistics of a run: LPs add to them at its end, and the result is the same for any partition.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace pdes {

// A sum of doubles without rounding, hence the same in any order.  Rounded once, when read.
class ExactSum {
 public:
  // The sum in digits of 32 bits from 2^-1074 on, with room for 2^64 of the largest doubles; carries may be pending.
  static constexpr int kDigits = 68;
  using Digits = std::array<std::int64_t, kDigits>;

  void add(double value) noexcept;  // must be finite
  void add(const ExactSum& other) noexcept;
  double value() const noexcept;  // the nearest double, ties to even; infinite above the largest

  // The normal form of this sum: each digit is in [0, 2^32), except the last, which has the sign.
  Digits digits() const noexcept;
  static ExactSum of(const Digits& digits) noexcept;

 private:
  void carry() noexcept;
  Digits digits_{};
  std::uint32_t since_carry_ = 0;
};

// Count, mean and extremes of observations that an LP makes while it runs.
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

class Report {
 public:
  // Adds to the number of that name; names are ordered by their first use.  Throws Error for a value that is not finite
  // (for a tally: its sum), and for a name that is a number of another kind.
  void count(std::string_view name, std::int64_t value);  // summed, exactly, modulo 2^64
  void sum(std::string_view name, double value);          // summed, exactly; rounded once
  void tally(std::string_view name, const Tally& tally);  // merged: count, sum, least, most

  struct Number {
    enum class Kind : std::uint8_t { count, sum, tally };
    std::string name;
    Kind kind = Kind::count;
    std::int64_t count = 0;  // of observations, for a tally
    ExactSum sum;
    double least = std::numeric_limits<double>::infinity(), most = -std::numeric_limits<double>::infinity();
    double mean() const noexcept { return count == 0 ? 0 : sum.value() / static_cast<double>(count); }
  };
  const std::vector<Number>& numbers() const noexcept { return numbers_; }
  const Number* find(std::string_view name) const noexcept;
  // The number of that name, which must exist; otherwise throws Error.
  const Number& at(std::string_view name) const;
  std::int64_t count_of(std::string_view name) const { return at(name).count; }
  double sum_of(std::string_view name) const { return at(name).sum.value(); }

  void merge(const Report& other);
  // Of the exact values, independent of the order of names.
  std::uint64_t digest() const noexcept;

  // For sending to another rank.  read throws Error for bytes that write did not make.
  std::vector<std::byte> write() const;
  static Report read(const std::vector<std::byte>& bytes);

 private:
  Number& number(std::string_view name, Number::Kind kind);
  std::vector<Number> numbers_;
};

}  // namespace pdes

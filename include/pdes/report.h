// Statistics of a run: LPs add to them at its end, and the result is the same for any partition.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "pdes/statistics.h"

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

class Report {
 public:
  // Adds to the number of that name; names are ordered by their first use.  Throws Error for a value that is not finite
  // (for a tally: its sum), and for a name that is a number of another kind.
  void count(std::string_view name, std::int64_t value);           // summed, exactly, modulo 2^64
  void sum(std::string_view name, double value);                   // summed, exactly; rounded once
  void tally(std::string_view name, const Tally& tally);           // merged: count, sum, least, most
  void level(std::string_view name, const Level& level);           // until now(): a mean over the time of all LPs together
  void histogram(std::string_view name, const Histogram& spread);  // merged
  void interval(std::string_view name, const BatchMeans& means);   // batches of all LPs, which must be of one size

  // The virtual time at which the run ended.  An LP may have executed later events if the run was stopped from outside.
  double now() const noexcept { return now_; }

  struct Number {
    enum class Kind : std::uint8_t { count, sum, tally, level, histogram, interval };
    std::string name;
    Kind kind = Kind::count;
    std::int64_t count = 0;  // of observations; of batches, for an interval
    ExactSum sum;            // of observations; of batches' means; of a level's area
    double least = std::numeric_limits<double>::infinity(), most = -std::numeric_limits<double>::infinity();
    ExactSum second;               // a level's time, the squares of batches' means
    std::uint64_t batch_size = 0;  // of an interval
    Histogram::Buckets buckets;    // of a histogram
    std::uint64_t first_use = 0;   // a place in the order of uses

    double mean() const noexcept;
    double quantile(double q) const;     // 0 < q < 1, of a histogram: to 2 %
    double half_width() const noexcept;  // of an interval: the mean is within it, either way, with a confidence of 95 %
  };
  const std::vector<Number>& numbers() const noexcept { return numbers_; }
  const Number* find(std::string_view name) const noexcept;
  // The number of that name, which must exist; otherwise throws Error.
  const Number& at(std::string_view name) const;
  std::int64_t count_of(std::string_view name) const { return at(name).count; }
  double sum_of(std::string_view name) const { return at(name).sum.value(); }

  void merge(const Report& other);
  // For the engine, so that the order of names is that of the LPs that use them, wherever these are: LP `lp` is asked next; all
  // names stand behind those of LPs that are asked; they are brought into order, those in one place by name.
  void asks(std::uint32_t lp) noexcept { uses_ = std::uint64_t{lp} << 32; }
  void stand_behind() noexcept;
  void sort();
  void ends_at(double now) noexcept { now_ = now; }
  // Of the exact values, independent of the order of names.
  std::uint64_t digest() const noexcept;

  // For sending to another rank.  read throws Error for bytes that write did not make.
  std::vector<std::byte> write() const;
  static Report read(const std::vector<std::byte>& bytes);

 private:
  Number& number(std::string_view name, Number::Kind kind) { return number(name, kind, uses_++); }
  Number& number(std::string_view name, Number::Kind kind, std::uint64_t use);
  static void same_batches(Number& number, std::uint64_t size);
  std::vector<Number> numbers_;
  std::uint64_t uses_ = 0;
  double now_ = 0;
};

}  // namespace pdes

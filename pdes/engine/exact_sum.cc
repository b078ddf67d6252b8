#include <algorithm>
#include <bit>
#include <cmath>

#include "pdes/report.h"

namespace pdes {
namespace {

constexpr int kDigitBits = 32;
constexpr std::int64_t kDigitMask = (std::int64_t{1} << kDigitBits) - 1;
constexpr int kMinExponent = -1074;  // digit 0 counts multiples of 2^-1074, the smallest double

// An add changes a digit by less than 2^32, so a digit stays below 2^61, and the sum of two sums below 2^62.
constexpr std::uint32_t kAddsPerCarry = 1u << 28;

// The double nearest to a sum whose digits are all in [0, 2^32).
double nearest(const ExactSum::Digits& digits) noexcept {
  int top = ExactSum::kDigits - 1;
  while (top > 0 && digits[static_cast<std::size_t>(top)] == 0) --top;
  const auto digit = [&](int i) { return i < 0 ? 0 : static_cast<unsigned __int128>(digits[static_cast<std::size_t>(i)]); };
  const unsigned __int128 high = digit(top) << 64 | digit(top - 1) << 32 | digit(top - 2);
  const int excess = 32 - std::countl_zero(static_cast<std::uint32_t>(digit(top)));  // bits of high beyond 64
  bool below = (high & ((static_cast<unsigned __int128>(1) << excess) - 1)) != 0;
  for (int i = 0; i < top - 2; ++i) below |= digit(i) != 0;
  // The conversion rounds 64 bits to 53; the last of the 64 stands for all lower ones.  Denormals have at most 53 bits.
  const auto rounded = static_cast<double>(static_cast<std::uint64_t>(high >> excess) | below);
  return std::ldexp(rounded, kMinExponent + kDigitBits * (top - 2) + excess);
}

}  // namespace

void ExactSum::add(double value) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const auto exponent = static_cast<unsigned>(bits >> 52 & 0x7ff);
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
  const std::uint64_t mantissa = exponent == 0 ? fraction : fraction | std::uint64_t{1} << 52;
  const unsigned place = exponent == 0 ? 0 : exponent - 1;
  auto shifted = static_cast<unsigned __int128>(mantissa) << place % kDigitBits;
  const bool negative = bits >> 63 != 0;
  for (std::size_t i = place / kDigitBits; shifted != 0; ++i, shifted >>= kDigitBits) {
    const auto digit = static_cast<std::int64_t>(shifted & kDigitMask);
    digits_[i] += negative ? -digit : digit;
  }
  if (++since_carry_ == kAddsPerCarry) carry();
}

void ExactSum::add(const ExactSum& other) noexcept {
  for (std::size_t i = 0; i < kDigits; ++i) digits_[i] += other.digits_[i];
  carry();
}

void ExactSum::carry() noexcept {
  for (std::size_t i = 0; i + 1 < kDigits; ++i) {
    digits_[i + 1] += digits_[i] >> kDigitBits;
    digits_[i] &= kDigitMask;
  }
  since_carry_ = 0;
}

ExactSum::Digits ExactSum::digits() const noexcept {
  ExactSum carried = *this;
  carried.carry();
  return carried.digits_;
}

ExactSum ExactSum::of(const Digits& digits) noexcept {
  ExactSum sum;
  sum.digits_ = digits;
  return sum;
}

double ExactSum::value() const noexcept {
  const Digits mine = digits();
  if (mine.back() >= 0) return nearest(mine);
  ExactSum negated;
  std::transform(mine.begin(), mine.end(), negated.digits_.begin(), [](std::int64_t digit) { return -digit; });
  return -nearest(negated.digits());
}

}  // namespace pdes

#include "pdes/report.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "pdes/options.h"
#include "pdes/random.h"

namespace pdes {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void check_finite(std::string_view name, double value) {
  if (!std::isfinite(value))
    throw Error("statistic '" + std::string(name) + "': " + std::to_string(value) + " is not a finite number");
}

// Modulo 2^64, so that no order of additions overflows.
void add_count(Report::Number& to, std::int64_t count) noexcept {
  to.count = static_cast<std::int64_t>(static_cast<std::uint64_t>(to.count) + static_cast<std::uint64_t>(count));
}

void add_extremes(Report::Number& to, double least, double most) noexcept {
  to.least = std::min(to.least, least);
  to.most = std::max(to.most, most);
}

std::uint64_t digest_of(const Report::Number& number) noexcept {
  std::uint64_t digest = number.name.size() + 1;
  const auto fold = [&](std::uint64_t word) { digest = mix(digest ^ word); };
  for (const char letter : number.name) fold(static_cast<unsigned char>(letter));
  fold(static_cast<std::uint64_t>(number.kind));
  fold(static_cast<std::uint64_t>(number.count));
  fold(std::bit_cast<std::uint64_t>(number.least));
  fold(std::bit_cast<std::uint64_t>(number.most));
  for (const std::int64_t digit : number.sum.digits()) fold(static_cast<std::uint64_t>(digit));
  return digest;
}

// What write stores of a number, except for its name.
struct Written {
  std::uint32_t name_size;
  std::uint32_t kind;
  std::int64_t count;
  double least, most;
  ExactSum::Digits digits;
};
static_assert(std::has_unique_object_representations_v<ExactSum::Digits> &&
              sizeof(Written) == 32 + sizeof(ExactSum::Digits));

[[noreturn]] void refuse() { throw Error("statistics from another rank are damaged"); }

bool is_valid(const Written& written) {
  constexpr std::int64_t kLimit = std::int64_t{1} << 32;
  const auto last = written.digits.end() - 1;
  const bool empty = written.least == kInfinity && written.most == -kInfinity;
  return written.kind <= static_cast<std::uint32_t>(Report::Number::Kind::tally) &&
         (empty || (std::isfinite(written.least) && std::isfinite(written.most) && written.least <= written.most)) &&
         std::all_of(written.digits.begin(), last, [](std::int64_t digit) { return digit >= 0 && digit < kLimit; }) &&
         *last >= -kLimit && *last < kLimit;
}

}  // namespace

Report::Number& Report::number(std::string_view name, Number::Kind kind) {
  auto at = std::find_if(numbers_.begin(), numbers_.end(), [&](const Number& n) { return n.name == name; });
  if (at == numbers_.end()) {
    at = numbers_.emplace(at);
    at->name = name;
    at->kind = kind;
  }
  if (at->kind != kind) throw Error("statistic '" + std::string(name) + "' is used for two kinds of numbers");
  return *at;
}

void Report::count(std::string_view name, std::int64_t value) { add_count(number(name, Number::Kind::count), value); }

void Report::sum(std::string_view name, double value) {
  check_finite(name, value);
  number(name, Number::Kind::sum).sum.add(value);
}

void Report::tally(std::string_view name, const Tally& tally) {
  check_finite(name, tally.sum());
  Number& to = number(name, Number::Kind::tally);
  add_count(to, static_cast<std::int64_t>(tally.count()));
  to.sum.add(tally.sum());
  // + 0.0 turns -0.0 into 0.0: it must not matter which of two equal extremes came first.
  add_extremes(to, tally.least() + 0.0, tally.most() + 0.0);
}

void Report::merge(const Report& other) {
  for (const Number& from : other.numbers_) {
    Number& to = number(from.name, from.kind);
    add_count(to, from.count);
    to.sum.add(from.sum);
    add_extremes(to, from.least, from.most);
  }
}

const Report::Number* Report::find(std::string_view name) const noexcept {
  const auto at = std::find_if(numbers_.begin(), numbers_.end(), [&](const Number& n) { return n.name == name; });
  return at == numbers_.end() ? nullptr : &*at;
}

const Report::Number& Report::at(std::string_view name) const {
  if (const Number* number = find(name)) return *number;
  throw Error("no statistic is named '" + std::string(name) + "'");
}

std::uint64_t Report::digest() const noexcept {
  std::uint64_t digest = 0;
  for (const Number& number : numbers_) digest += digest_of(number);
  return digest;
}

std::vector<std::byte> Report::write() const {
  std::vector<std::byte> bytes;
  for (const Number& n : numbers_) {
    const Written written{static_cast<std::uint32_t>(n.name.size()),
                          static_cast<std::uint32_t>(n.kind),
                          n.count,
                          n.least,
                          n.most,
                          n.sum.digits()};
    const auto* start = reinterpret_cast<const std::byte*>(&written);
    bytes.insert(bytes.end(), start, start + sizeof written);
    const auto* name = reinterpret_cast<const std::byte*>(n.name.data());
    bytes.insert(bytes.end(), name, name + n.name.size());
  }
  return bytes;
}

Report Report::read(const std::vector<std::byte>& bytes) {
  Report report;
  for (std::size_t at = 0; at < bytes.size();) {
    Written written;
    if (bytes.size() - at < sizeof written) refuse();
    std::memcpy(&written, &bytes[at], sizeof written);
    at += sizeof written;
    if (!is_valid(written) || bytes.size() - at < written.name_size) refuse();
    const std::string name(reinterpret_cast<const char*>(bytes.data() + at), written.name_size);
    at += written.name_size;
    if (report.find(name) != nullptr) refuse();
    report.numbers_.push_back({name, Number::Kind{static_cast<std::uint8_t>(written.kind)}, written.count,
                               ExactSum::of(written.digits), written.least, written.most});
  }
  return report;
}

}  // namespace pdes

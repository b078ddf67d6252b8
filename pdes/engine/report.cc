#include "pdes/report.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <tuple>
#include <type_traits>
#include <utility>

#include "pdes/archive.h"
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
  const auto fold_sum = [&](const ExactSum& sum) {
    for (const std::int64_t digit : sum.digits()) fold(static_cast<std::uint64_t>(digit));
  };
  fold_sum(number.sum);
  if (number.kind <= Report::Number::Kind::tally) return digest;
  fold_sum(number.second);
  fold(number.batch_size);
  for (const auto& [bucket, count] : number.buckets) {
    fold(static_cast<std::uint64_t>(bucket));
    fold(count);
  }
  return digest;
}

// What write stores of a number, except for its name.
struct Written {
  std::uint32_t name_size;
  std::uint32_t kind;
  std::uint64_t first_use;
  std::int64_t count;
  double least, most;
  ExactSum::Digits digits;
};
static_assert(std::has_unique_object_representations_v<ExactSum::Digits> &&
              sizeof(Written) == 40 + sizeof(ExactSum::Digits));

constexpr std::uint64_t kBehind = ~std::uint64_t{0};

[[noreturn]] void refuse() { throw Error("statistics from another rank are damaged"); }

bool is_valid(const ExactSum::Digits& digits) {
  constexpr std::int64_t kLimit = std::int64_t{1} << 32;
  const auto last = digits.end() - 1;
  return std::all_of(digits.begin(), last, [](std::int64_t digit) { return digit >= 0 && digit < kLimit; }) &&
         *last >= -kLimit && *last < kLimit;
}

bool is_valid(const Written& written) {
  const bool empty = written.least == kInfinity && written.most == -kInfinity;
  return written.kind <= static_cast<std::uint32_t>(Report::Number::Kind::interval) &&
         (empty || (std::isfinite(written.least) && std::isfinite(written.most) && written.least <= written.most)) &&
         is_valid(written.digits);
}

// What a number of the later kinds has beyond that.
struct Rest {
  ExactSum::Digits second{};
  std::uint64_t batch_size = 0;
  Histogram::Buckets buckets;
  template <class A>
  void serialize(A& archive) {
    archive(second, batch_size, buckets);
  }
};

bool has_rest(Report::Number::Kind kind) { return kind > Report::Number::Kind::tally; }

bool is_valid(const Rest& rest, const Report::Number& number) {
  std::uint64_t in_buckets = 0;
  for (const auto& [bucket, count] : rest.buckets) in_buckets += count;
  const bool spread = number.kind == Report::Number::Kind::histogram;
  return is_valid(rest.second) && in_buckets == (spread ? static_cast<std::uint64_t>(number.count) : 0) &&
         (rest.batch_size > 0) == (number.kind == Report::Number::Kind::interval);
}

// Quantile 0.975 of Student's t distribution: Abramowitz and Stegun, 26.7.5, which is right to 0.001 from 7 degrees on.
double student_975(std::uint64_t degrees) noexcept {
  constexpr double kFew[] = {kInfinity, 12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469};
  if (degrees < std::size(kFew)) return kFew[degrees];
  constexpr double kNormal = 1.9599639845400545, k2 = kNormal * kNormal;
  const double n = static_cast<double>(degrees);
  return kNormal * (1 + (k2 + 1) / (4 * n) + ((5 * k2 + 16) * k2 + 3) / (96 * n * n) +
                    (((3 * k2 + 19) * k2 + 17) * k2 - 15) / (384 * n * n * n));
}

double half_width_of(std::uint64_t batches, double sum, double squares) noexcept {
  if (batches < 2) return kInfinity;
  const auto n = static_cast<double>(batches);
  const double off = squares - sum * sum / n;  // below 0 by rounding alone
  return student_975(batches - 1) * std::sqrt(std::max(off, 0.0) / (n - 1) / n);
}

}  // namespace

Report::Number& Report::number(std::string_view name, Number::Kind kind, std::uint64_t use) {
  auto at = std::find_if(numbers_.begin(), numbers_.end(), [&](const Number& n) { return n.name == name; });
  if (at == numbers_.end()) {
    at = numbers_.emplace(at);
    at->name = name;
    at->kind = kind;
    at->first_use = use;
  }
  if (at->kind != kind) throw Error("statistic '" + std::string(name) + "' is used for two kinds of numbers");
  at->first_use = std::min(at->first_use, use);
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

void Report::level(std::string_view name, const Level& level) {
  check_finite(name, level.area(now_));
  Number& to = number(name, Number::Kind::level);
  add_count(to, 1);
  to.sum.add(level.area(now_));
  to.second.add(level.time(now_));
  add_extremes(to, level.least() + 0.0, level.most() + 0.0);
}

void Report::histogram(std::string_view name, const Histogram& spread) {
  check_finite(name, spread.tally().sum());
  Number& to = number(name, Number::Kind::histogram);
  add_count(to, static_cast<std::int64_t>(spread.tally().count()));
  to.sum.add(spread.tally().sum());
  add_extremes(to, spread.tally().least() + 0.0, spread.tally().most() + 0.0);
  for (const auto& [bucket, count] : spread.buckets()) to.buckets[bucket] += count;
}

void Report::interval(std::string_view name, const BatchMeans& means) {
  check_finite(name, means.squares());
  if (means.size() == 0) throw Error("statistic '" + std::string(name) + "': a batch needs at least one observation");
  Number& to = number(name, Number::Kind::interval);
  same_batches(to, means.size());
  add_count(to, static_cast<std::int64_t>(means.batches()));
  to.sum.add(means.sum());
  to.second.add(means.squares());
  add_extremes(to, means.least() + 0.0, means.most() + 0.0);
}

void Report::same_batches(Number& number, std::uint64_t size) {
  if (number.batch_size == 0) number.batch_size = size;
  if (number.batch_size != size)
    throw Error("statistic '" + number.name + "' has batches of " + std::to_string(number.batch_size) + " and of " +
                std::to_string(size) + " observations");
}

double Report::Number::mean() const noexcept {
  const double of = kind == Kind::level ? second.value() : static_cast<double>(count);
  return of > 0 ? sum.value() / of : 0;
}

double Report::Number::quantile(double q) const {
  const double rank = q * static_cast<double>(count);
  std::uint64_t passed = 0;
  for (const auto& [bucket, in_it] : buckets) {
    passed += in_it;
    if (static_cast<double>(passed) >= rank) return std::clamp(Histogram::middle_of(bucket), least, most);
  }
  return 0;
}

double Report::Number::half_width() const noexcept {
  return half_width_of(static_cast<std::uint64_t>(count), sum.value(), second.value());
}

double BatchMeans::half_width() const noexcept { return half_width_of(batches_, sum_, squares_); }

double Histogram::middle_of(std::int32_t bucket) noexcept {
  if (bucket == 0) return 0;
  const auto low = static_cast<std::uint64_t>(std::abs(bucket) - 1);
  const double size = std::bit_cast<double>(low << 47 | std::uint64_t{1} << 46);
  return bucket < 0 ? -size : size;
}

void Report::merge(const Report& other) {
  for (const Number& from : other.numbers_) {
    Number& to = number(from.name, from.kind, from.first_use);
    add_count(to, from.count);
    to.sum.add(from.sum);
    add_extremes(to, from.least, from.most);
    to.second.add(from.second);
    if (from.kind == Number::Kind::interval) same_batches(to, from.batch_size);
    for (const auto& [bucket, count] : from.buckets) to.buckets[bucket] += count;
  }
}

void Report::stand_behind() noexcept {
  for (Number& number : numbers_) number.first_use = kBehind;
}

void Report::sort() {
  std::sort(numbers_.begin(), numbers_.end(),
            [](const Number& a, const Number& b) { return std::tie(a.first_use, a.name) < std::tie(b.first_use, b.name); });
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
                          n.first_use,
                          n.count,
                          n.least,
                          n.most,
                          n.sum.digits()};
    const auto* start = reinterpret_cast<const std::byte*>(&written);
    bytes.insert(bytes.end(), start, start + sizeof written);
    const auto* name = reinterpret_cast<const std::byte*>(n.name.data());
    bytes.insert(bytes.end(), name, name + n.name.size());
    if (!has_rest(n.kind)) continue;
    Rest rest{n.second.digits(), n.batch_size, n.buckets};
    const std::vector<std::byte> more = to_bytes(rest);
    bytes.insert(bytes.end(), more.begin(), more.end());
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
    Number& number = report.numbers_.emplace_back(Number{name,
                                                         Number::Kind{static_cast<std::uint8_t>(written.kind)},
                                                         written.count,
                                                         ExactSum::of(written.digits),
                                                         written.least,
                                                         written.most,
                                                         {},
                                                         0,
                                                         {},
                                                         written.first_use});
    if (!has_rest(number.kind)) continue;
    Archive left(std::span<const std::byte>(bytes).subspan(at));
    Rest rest;
    try {
      left(rest);
    } catch (const Error&) { refuse(); }
    if (!is_valid(rest, number)) refuse();
    at = bytes.size() - left.left().size();
    number.second = ExactSum::of(rest.second);
    number.batch_size = rest.batch_size;
    number.buckets = std::move(rest.buckets);
  }
  return report;
}

}  // namespace pdes

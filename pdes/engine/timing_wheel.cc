#include "pdes/timing_wheel.h"

#include <hmalloc/hmalloc.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <utility>

namespace pdes {
namespace {

constexpr double kWanted = 512;            // keys in a bucket
constexpr double kMin = 128, kMax = 2048;  // outside this range moving all keys to another width pays
constexpr double kFewest = 16;             // keys in a bucket: with fewer the heap of late keys is as good
constexpr double kTooLate = 1.0 / 3;       // late keys for each in a bucket: the width is too large
constexpr double kHardlyLate = 1.0 / 32;   // far fewer than a quarter of a width that was too large would make late
constexpr std::size_t kManyLate = 4096;    // keys for which a heap is no good place
constexpr std::size_t kSpare = 4;          // chunks kept, besides a quarter of those in use
constexpr std::size_t kLine = 64;

Time power_of_two_below(double x) noexcept { return std::exp2(std::floor(std::log2(x))); }

std::size_t different_times(std::span<const Key> sorted) noexcept {
  std::size_t times = 1;
  for (std::size_t i = 1; i < sorted.size(); ++i) times += sorted[i - 1].time < sorted[i].time;
  return times;
}

}  // namespace

TimingWheel::TimingWheel(Queue kind, Time widest) : widest_(widest > 0 ? power_of_two_below(widest) : kNever), kind_(kind) {}

TimingWheel::~TimingWheel() {
  for (std::size_t number = 0; number < buckets_.size(); ++number)
    if (buckets_[number] != nullptr) empty(number, [](const Key&) {});
  while (free_ != nullptr) {
    Chunk* chunk = free_;
    free_ = chunk->older();
    hm_free(chunk);
  }
}

std::size_t TimingWheel::bytes() const noexcept {
  return chunk_count_ * sizeof(Chunk) + sorted_.capacity() * sizeof(Key) + pieces_.capacity() * sizeof(pieces_[0]) +
         sort_.bytes() + late_.bytes() + buckets_.capacity() * sizeof(Bucket);
}

void TimingWheel::push_late(const Key& key) {
  ++late_count_;
  late_.push(key);
}

// ---- Chunks. --------------------------------------------------------------------------------------------------------

inline void TimingWheel::fetch(const Chunk* chunk) noexcept {
  if (chunk == nullptr) return;
  for (std::size_t at = 0; at < sizeof(Chunk); at += kLine)
    __builtin_prefetch(reinterpret_cast<const std::byte*>(chunk) + at);
}

void TimingWheel::add_chunk(std::size_t number) {
  Chunk* chunk = free_;
  if (chunk != nullptr) {
    free_ = chunk->older();
    --free_count_;
  } else {
    chunk = static_cast<Chunk*>(hm_aligned_alloc(sizeof(Chunk), sizeof(Chunk)));
    if (chunk == nullptr) throw std::bad_alloc();
    ++chunk_count_;
  }
  Bucket& bucket = buckets_[number];
  if (bucket == nullptr) {
    chunk->before = {};
  } else {
    Chunk* const older = chunk_of(bucket);
    chunk->before = {older, older->before[0], older->before[1], older->before[2]};
  }
  bucket = chunk->keys.data();
  used_[number / 64] |= std::uint64_t{1} << number % 64;
}

void TimingWheel::release(Chunk* chunk) noexcept {
  if (free_count_ >= kSpare + (chunk_count_ - free_count_) / 4) {
    hm_free(chunk);
    --chunk_count_;
    return;
  }
  chunk->before[0] = free_;
  free_ = chunk;
  ++free_count_;
}

// Passes all keys of a bucket to take, which may fill other buckets.
template <class F>
void TimingWheel::empty(std::size_t number, F&& take) {
  const Key* end = buckets_[number];
  Chunk* chunk = chunk_of(buckets_[number]);
  buckets_[number] = nullptr;
  used_[number / 64] &= ~(std::uint64_t{1} << number % 64);
  while (chunk != nullptr) {
    fetch(chunk->before[3]);
    for (const Key* key = chunk->keys.data(); key != end; ++key) take(*key);
    Chunk* older = chunk->older();
    release(chunk);
    chunk = older;
    if (chunk != nullptr) end = chunk->keys.data() + chunk->keys.size();
  }
}

// ---- The next bucket. -----------------------------------------------------------------------------------------------

std::size_t TimingWheel::first_used(std::size_t from, std::size_t to) const noexcept {
  for (std::size_t word = from / 64; word * 64 < to; ++word) {
    std::uint64_t bits = used_[word];
    if (word == from / 64) bits &= ~std::uint64_t{0} << from % 64;
    if (bits != 0) return std::min(to, word * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
  }
  return to;
}

// Finds the first tick that the keys of the next bucket can have; false if there are none.
bool TimingWheel::find_next(std::uint64_t& tick, std::size_t& number) const noexcept {
  number = first_used(next_ % kNear, kNear);
  if (number != kNear) {
    tick = (next_ & ~(kNear - 1)) | number;
    return true;
  }
  for (unsigned level = 0; level < kLevels; ++level) {
    std::size_t base = kNear + level * kFar;
    number = first_used(base, base + kFar);
    if (number == base + kFar) continue;
    unsigned above = shift(level) + kFarBits;
    tick = (next_ >> above << above) | (number - base) << shift(level);
    return true;
  }
  return false;
}

// Opening begins a new stretch: the keys that waited for it on the levels move down.
void TimingWheel::advance(std::uint64_t tick) {
  std::uint64_t changed = tick ^ next_;
  next_ = tick;
  for (unsigned level = kLevels; level-- > 0;) {
    if (changed >> shift(level) == 0) continue;
    std::size_t number = slot(level, tick);
    if (buckets_[number] != nullptr) empty(number, [this](const Key& key) { insert(tick_of(key.time), key); });
  }
}

const Key* TimingWheel::min_slow(Time bound) {
  std::uint64_t tick;
  std::size_t number;
  if (late_.size() >= kManyLate && late_count_ - late_then_opened_ > 4 * late_.size()) start_anew();
  while (open_ == open_end_ && late_.empty()) {
    if (next_ == kAlwaysLate || !find_next(tick, number) || !(start_of(tick) < bound)) return nullptr;
    if (number < kNear) open(tick);
    else advance(tick);
  }
  if (open_ != open_end_) return peek(bound);
  return late_.least().time < bound ? &late_.least() : nullptr;
}

// Nothing but late keys, many and for long: the width that the first keys had told is too large for those that followed.
void TimingWheel::start_anew() {
  late_then_opened_ = late_count_;
  if (next_ == kAlwaysLate) return;
  std::vector<Key> keys = drain();
  late_at_ = open_;  // popped_tie() still tells
  const Time width = suitable_width(keys);
  if (width != width_) ++retunings_;
  set_width(width, keys);
}

bool TimingWheel::is_too_late() const noexcept {
  return static_cast<double>(late_count_ - late_then_) > kTooLate * static_cast<double>(opened_keys_);
}

// Until the keys are sorted they stay in their chunks, so that an exception leaves each in one place.
void TimingWheel::open(std::uint64_t tick) {
  const std::size_t number = tick % kNear;
  std::size_t count = 0;
  pieces_.clear();
  const Key* end = buckets_[number];
  for (Chunk* chunk = chunk_of(buckets_[number]); chunk != nullptr; chunk = chunk->older()) {
    fetch(chunk->before[3]);
    pieces_.emplace_back(std::as_const(chunk->keys).data(), end);
    count += pieces_.back().size();
    if (chunk->older() != nullptr) end = chunk->older()->keys.data() + chunk->keys.size();
  }
  std::ranges::reverse(pieces_);  // what came first comes first
  if (sorted_.size() < count || sorted_.size() > 4 * count + 4096) sorted_ = std::vector<Key>(count + count / 4);
  sort_(pieces_, count, sorted_.data(), start_of(tick), start_of(tick + 1));
  empty(number, [](const Key&) {});
  open_ = sorted_.data();
  late_at_ = nullptr;
  open_end_ = open_ + count;
  late_then_opened_ = late_count_;
  const bool matters = static_cast<double>(count) > kMax || is_too_late();
  const std::size_t times = matters ? different_times({open_, count}) : count;
  advance(tick + 1);
  watch(count, times);
}

Time TimingWheel::lower_bound() const {
  Time least = late_.empty() ? kNever : late_.least().time;
  if (open_ != open_end_) return std::min(least, open_->time);
  std::uint64_t tick;
  std::size_t number;
  if (least != kNever || next_ == kAlwaysLate || !find_next(tick, number)) return least;
  const Chunk* chunk = chunk_of(buckets_[number]);
  if (chunk->older() != nullptr) return start_of(tick);
  for (const Key* key = chunk->keys.data(); key != buckets_[number]; ++key) least = std::min(least, key->time);
  return least;
}

// ---- The width. -----------------------------------------------------------------------------------------------------

std::vector<Key> TimingWheel::drain() {
  std::vector<Key> keys;
  keys.reserve(size_);
  for (std::size_t number = 0; number < buckets_.size(); ++number)
    if (buckets_[number] != nullptr) empty(number, [&](const Key& key) { keys.push_back(key); });
  keys.insert(keys.end(), open_, open_end_);
  open_ = open_end_ = nullptr;
  late_.drain([&](const Key& key) { keys.push_back(key); });
  size_ = 0;
  return keys;
}

// The hole that a key leaves is filled by the bucket's last one, which has been looked at already.  Events are scattered in
// memory, so those of a chunk are fetched together.
void TimingWheel::sift_bucket(std::size_t number, const std::function<bool(const Key&)>& leaves, std::vector<Key>& left) {
  Bucket& last = buckets_[number];
  Key* key = last;
  for (Chunk *chunk = chunk_of(last), *older; chunk != nullptr; chunk = older) {
    older = chunk->older();
    for (const Key* ahead = chunk->keys.data(); ahead != key; ++ahead) __builtin_prefetch(ahead->event);
    while (key != chunk->keys.data()) {
      if (!leaves(*--key)) continue;
      left.push_back(*key);
      --size_;
      *key = *--last;
      Chunk* const newest = chunk_of(last + 1);
      if (last != newest->keys.data()) continue;
      last = newest->older() == nullptr ? nullptr : newest->older()->keys.data() + newest->older()->keys.size();
      release(newest);
    }
    if (older != nullptr) key = older->keys.data() + older->keys.size();
  }
  if (last == nullptr) used_[number / 64] &= ~(std::uint64_t{1} << number % 64);
}

void TimingWheel::sift(const std::function<bool(const Key&)>& leaves, std::vector<Key>& left) {
  const auto open_count = static_cast<std::size_t>(open_end_ - open_);
  left.reserve(left.size() + open_count + late_.size());
  const std::size_t before = left.size();
  const auto takes = [&](const Key& key) noexcept {
    if (leaves(key)) left.push_back(key);
    else return false;
    return true;
  };
  Key* const open = const_cast<Key*>(open_);  // in sorted_
  open_end_ = std::remove_if(open, open + open_count, takes);
  late_.remove_if(takes);
  size_ -= left.size() - before;
  for (std::size_t number = 0; number < buckets_.size(); ++number)
    if (buckets_[number] != nullptr) sift_bucket(number, leaves, left);
}

std::vector<Key> TimingWheel::keys() const {
  std::vector<Key> keys = late_.keys();
  keys.reserve(size_);
  keys.insert(keys.end(), open_, open_end_);
  for (Bucket bucket : buckets_) {
    if (bucket == nullptr) continue;
    const Key* end = bucket;
    for (const Chunk* chunk = chunk_of(bucket); chunk != nullptr; chunk = chunk->older()) {
      keys.insert(keys.end(), chunk->keys.data(), end);
      if (chunk->older() != nullptr) end = chunk->older()->keys.data() + chunk->keys.size();
    }
  }
  return keys;
}

void TimingWheel::start() {
  if (kind_ == Queue::heap) return;
  buckets_.assign(kNear + kLevels * kFar, nullptr);
  used_.assign(buckets_.size() / 64, 0);
  std::vector<Key> keys = drain();
  late_count_ = 0;
  Time width = suitable_width(keys);
  set_width(width, keys);
}

// Chosen so that the buckets which open first hold kWanted keys.
Time TimingWheel::suitable_width(std::vector<Key>& keys) const {
  Time widest = widest_ < kNever ? widest_ : 1;
  if (keys.size() < 2) return widest;
  std::size_t some = std::min(keys.size() - 1, std::max<std::size_t>(keys.size() / 4, 16));
  std::nth_element(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(some), keys.end());
  Time least = std::min_element(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(some))->time;
  double spread = keys[some].time - least;
  if (!(spread > 0) || !std::isfinite(spread)) return widest;
  return std::min(widest_, power_of_two_below(1.4 * spread / static_cast<double>(some) * kWanted));
}

void TimingWheel::set_width(Time width, const std::vector<Key>& keys) {
  width_ = width;
  per_width_ = 1 / width;
  Time least = kNever;
  for (const Key& key : keys) least = std::min(least, key.time);
  next_ = keys.empty() ? 1 : tick_of(least);
  for (const Key& key : keys) insert(tick_of(key.time), key);
  size_ = keys.size();
}

// times: how many different ones the keys have, counted if they are many or too many come late: simultaneous events stay
// together in however narrow a bucket.
void TimingWheel::watch(std::size_t keys, std::size_t times) {
  ++opened_buckets_;
  opened_keys_ += keys;
  opened_times_ += times;
  if (opened_buckets_ < patience_ && opened_keys_ < patience_ * static_cast<std::uint64_t>(kWanted)) return;
  const auto buckets = static_cast<double>(opened_buckets_), in_buckets = static_cast<double>(opened_keys_);
  const double mean_keys = in_buckets / buckets, mean_times = static_cast<double>(opened_times_) / buckets;
  const double late = static_cast<double>(late_count_ - late_then_) / in_buckets;
  const Time suitable = power_of_two_below(1.4 * width_ * kWanted / mean_times);
  if (late > kTooLate) late_width_ = width_;
  else if (late < kHardlyLate && mean_keys < kFewest) late_width_ = kNever;  // the model has changed
  Time wanted = width_;
  if (mean_times > kMax) wanted = suitable;
  else if (late > kTooLate) wanted = mean_times < kFewest ? width_ : width_ / 4;
  else if (mean_keys < kMin) wanted = std::max(width_, std::min({suitable, widest_, late_width_ / 4}));
  opened_buckets_ = opened_keys_ = opened_times_ = 0;
  late_then_ = late_count_;
  // Sparse buckets are no hurry, and a width near the wanted one is good enough.
  if (wanted > width_ / 4 && wanted < width_ * 4) return;
  patience_ *= 2;  // moving all keys must stay rare, whatever the model does
  ++retunings_;
  set_width(wanted, drain());
}

bool TimingWheel::is_valid() const {
  std::size_t found = late_.size() + static_cast<std::size_t>(open_end_ - open_);
  bool valid = std::is_sorted(open_, open_end_);
  for (std::size_t number = 0; number < buckets_.size(); ++number) {
    Bucket bucket = buckets_[number];
    valid = valid && ((used_[number / 64] >> number % 64 & 1) != 0) == (bucket != nullptr);  // W3
    if (bucket == nullptr) continue;
    const Key* end = bucket;
    for (const Chunk* chunk = chunk_of(bucket); chunk != nullptr; chunk = chunk->older()) {
      for (const Key* key = chunk->keys.data(); key != end; ++key, ++found) {
        std::uint64_t tick = tick_of(key->time);
        valid = valid && tick >= next_;                                                  // W1
        valid = valid && ((tick ^ next_) < kNear ? tick % kNear : far(tick)) == number;  // W2
      }
      if (chunk->older() != nullptr) end = chunk->older()->keys.data() + chunk->keys.size();
    }
  }
  return valid && found == size_;
}

}  // namespace pdes

// The pending event set: a hierarchical timing wheel (Varghese and Lauck 1987) whose buckets are sorted when they open.
//
// Time is cut into ticks of one width, a power of two, numbered from 1.  The near ring has a bucket for each tick of the
// current stretch of 2048 ticks.  Eight levels of 64 slots above it hold what is further away; a slot is distributed when its
// time comes.  A bucket is opened by sorting it into an array that is read from front to back.  Keys that arrive for an
// opened bucket or an earlier one (late events) go to a heap.  With Queue::heap every event counts as late.
//
// Invariants
//  W1  A key in the open array or the heap has a tick below next_; a key in a bucket has one from next_ on.
//  W2  A tick on the near ring agrees with next_ in all bits above the ring's.  A tick in a slot of a level agrees with it
//      above the level's digit, and has a larger digit there.
//  W3  A bit of used_ is set if and only if its bucket is not empty.
// Used by one thread.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "pdes/event.h"
#include "pdes/key_heap.h"
#include "pdes/key_sort.h"
#include "pdes/options.h"

namespace pdes {

class TimingWheel {
 public:
  // widest: the largest span of an open bucket, namely the lookahead: then events from other LPs are rarely late.
  TimingWheel(Queue kind, Time widest);
  ~TimingWheel();
  TimingWheel(const TimingWheel&) = delete;
  TimingWheel& operator=(const TimingWheel&) = delete;

  void push(const Key& key) {
    ++size_;
    std::uint64_t tick = tick_of(key.time);
    if (tick < next_) [[unlikely]]
      return push_late(key);
    insert(tick, key);
  }

  // The smallest key, or null if its time is not below bound; pop() removes it.
  const Key* peek(Time bound) {
    if (open_ != open_end_) [[likely]] {
      const Key* first = open_;
      if (!late_.empty() && late_.least() < *first) [[unlikely]]
        first = &late_.least();
      return first->time < bound ? first : nullptr;
    }
    return min_slow(bound);
  }
  // Removes what peek() returned.  An array that has been read to its end may end where the heap's memory begins.
  void pop(const Key* least) noexcept {
    --size_;
    if (least == open_ && open_ != open_end_) [[likely]]
      ++open_;
    else pop_late();
  }
  // The tie of what pop() removed last, until the next peek().  For error messages: the common way keeps no record of it.
  std::uint64_t popped_tie() const noexcept { return open_ == late_at_ ? late_tie_ : open_[-1].tie; }
  // Keys that will probably be popped soon, the next one first.
  const Key* upcoming() const noexcept { return open_; }
  const Key* upcoming_end() const noexcept { return open_end_; }

  // A lower bound of all keys; infinity if there are none.  Exact unless a bucket with many keys comes next.
  Time lower_bound() const;

  std::size_t size() const noexcept { return size_; }
  std::size_t bytes() const noexcept;  // held by the queue itself
  std::uint64_t late() const noexcept { return late_count_; }
  std::uint64_t retunings() const noexcept { return retunings_; }
  double width() const noexcept { return next_ == kAlwaysLate ? 0 : width_; }

  // Called when the first events are in: chooses the width.  Until then everything counts as late.
  void start();
  // Removes and returns all keys, unordered.
  std::vector<Key> drain();
  // Moves the keys for which `leaves` returns true to `left`.  An exception leaves each in one place.
  void sift(const std::function<bool(const Key&)>& leaves, std::vector<Key>& left);
  // All keys, unordered; they stay.
  std::vector<Key> keys() const;
  bool is_valid() const;

 private:
  // Keys of one bucket, newest chunk first; each chunk is aligned to its size.  It names the four before it: who walks along
  // them fetches the fourth, which is here when he comes there.
  struct Chunk {
    std::array<Chunk*, 4> before;
    std::array<Key, 20> keys;
    Chunk* older() const noexcept { return before[0]; }
  };
  static_assert(sizeof(Chunk) == 512);
  static constexpr unsigned kNearBits = 11, kFarBits = 6, kLevels = 8;
  static constexpr std::uint64_t kNear = 1 << kNearBits, kFar = 1 << kFarBits;
  static constexpr std::uint64_t kAlwaysLate = ~std::uint64_t{0};
  static constexpr double kLastTick = 0x1p58;  // keys beyond it share a bucket and are sorted when it opens
  // Points behind the last key of the newest chunk; null if the bucket is empty.  At a chunk's end it looks like the
  // start of the next chunk, so one test detects both.
  using Bucket = Key*;

  std::uint64_t tick_of(Time time) const noexcept {
    double ticks = time * per_width_;
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(ticks < kLastTick ? ticks : kLastTick)) + 1;
  }
  Time start_of(std::uint64_t tick) const noexcept { return static_cast<double>(tick - 1) * width_; }

  // Requires tick >= next_.
  void insert(std::uint64_t tick, const Key& key) {
    if ((tick ^ next_) < kNear) [[likely]]
      append(tick % kNear, key);
    else append(far(tick), key);
  }
  // The slot of a tick beyond the near ring, on the level of the highest digit in which the tick differs from next_.
  std::size_t far(std::uint64_t tick) const noexcept {
    unsigned level = (static_cast<unsigned>(std::bit_width(tick ^ next_)) - 1 - kNearBits) / kFarBits;
    return slot(level, tick);
  }
  static std::size_t slot(unsigned level, std::uint64_t tick) noexcept {
    return kNear + level * kFar + (tick >> shift(level)) % kFar;
  }
  static constexpr unsigned shift(unsigned level) noexcept { return kNearBits + level * kFarBits; }

  void append(std::size_t number, const Key& key) {
    Bucket& bucket = buckets_[number];
    if (reinterpret_cast<std::uintptr_t>(bucket) % sizeof(Chunk) == 0) [[unlikely]]
      add_chunk(number);
    // Field by field: a wide load of a key that narrow stores have just put on the stack would stall.
    bucket->time = key.time;
    bucket->tie = key.tie;
    bucket->event = key.event;
    ++bucket;
  }
  static Chunk* chunk_of(Bucket bucket) noexcept {
    return reinterpret_cast<Chunk*>(reinterpret_cast<std::uintptr_t>(bucket - 1) & ~(sizeof(Chunk) - 1));
  }

  void push_late(const Key& key);
  void pop_late() noexcept {
    late_at_ = open_;
    late_tie_ = late_.pop().tie;
  }
  static void fetch(const Chunk* chunk) noexcept;
  void add_chunk(std::size_t number);
  void release(Chunk* chunk) noexcept;
  template <class F>
  void empty(std::size_t number, F&& take);
  void sift_bucket(std::size_t number, const std::function<bool(const Key&)>& leaves, std::vector<Key>& left);

  const Key* min_slow(Time bound);
  std::size_t first_used(std::size_t from, std::size_t to) const noexcept;  // `to`: there is none
  bool find_next(std::uint64_t& tick, std::size_t& number) const noexcept;
  void advance(std::uint64_t tick);  // next_ = tick
  void start_anew();
  bool is_too_late() const noexcept;
  void open(std::uint64_t tick);
  void watch(std::size_t keys, std::size_t times);
  void set_width(Time width, const std::vector<Key>& keys);
  Time suitable_width(std::vector<Key>& keys) const;

  // Members that push needs come first.
  double per_width_ = 1;              // 1 / width_
  std::uint64_t next_ = kAlwaysLate;  // first tick that has not been opened
  std::size_t size_ = 0;
  std::vector<Bucket> buckets_;  // the near ring, then the levels
  const Key* open_ = nullptr;
  const Key* open_end_ = nullptr;
  KeyHeap late_;
  std::uint64_t late_count_ = 0;
  // Where open_ was when a late key was popped last, and its tie.
  const Key* late_at_ = nullptr;
  std::uint64_t late_tie_ = 0;

  double width_ = 1;
  Time widest_;
  Queue kind_;
  std::vector<std::uint64_t> used_;  // bitmap over buckets_
  std::vector<Key> sorted_;
  std::vector<std::span<const Key>> pieces_;  // of the bucket that is opened
  KeySort sort_;
  Chunk* free_ = nullptr;
  std::size_t free_count_ = 0, chunk_count_ = 0;

  // Since the width was last reconsidered.
  std::uint64_t opened_buckets_ = 0, opened_keys_ = 0, opened_times_ = 0, late_then_ = 0, patience_ = 64, retunings_ = 0;
  Time late_width_ = kNever;            // at which too many keys were late
  std::uint64_t late_then_opened_ = 0;  // late_count_ when a bucket was opened last
};

}  // namespace pdes

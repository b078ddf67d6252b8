// How many blocks a block cache may hold: the heap reports what happened to the cache, the tuner returns a
// capacity.
//
// A cache is too small if the program allocates and frees in larger batches: at several overflows in a row, refills had
// brought more blocks than it holds.  One or two such overflows can be coincidence.  It is also too small if it went
// from full to empty and back many times in a round.  The larger a cache, the more rarely that happens by chance, so
// growth ends.  Entries present at every tick of a round were not needed.  A cache that did not change between two
// ticks is idle.
//
// A tuner is used by one thread.
#pragma once
#include <algorithm>
#include <utility>

#include "base/size_classes.h"

namespace hm {

class CacheTuner {
 public:
  static constexpr size_t kMaxEntries = 1023;
  static constexpr size_t kMostWanted = 64;  // of one refill
  static constexpr size_t kFirstEntries = 127;
  static constexpr size_t kFirstBytes = 32 * kKiB;  // half of that for blocks above 512 bytes
  static constexpr size_t kMaxBytes = 512 * kKiB;   // limit for one cache
  static constexpr uint16_t kBuilding = 256;        // as many: the program builds something
  static constexpr size_t kLongRun = 32;            // as many, and four times what the cache may hold: refills bring more,
  static constexpr size_t kRunBytes = 64 * kKiB;    // but not of large blocks: what a run leaves is there until a free
  static constexpr uint16_t kProducer = 8192;       // blocks allocated without an overflow: other threads free them

  // For class c: the initial and the largest capacity.
  static constexpr size_t first_capacity(size_t c) {
    size_t bytes = kClassSize[c] <= 512 ? kFirstBytes : kFirstBytes / 2;
    return std::min(max_capacity(c), std::clamp<size_t>(bytes / kClassSize[c], 2, kFirstEntries));
  }
  static constexpr size_t max_capacity(size_t c) { return std::clamp<size_t>(kMaxBytes / kClassSize[c], 2, kMaxEntries); }

  size_t capacity() const noexcept { return capacity_; }  // 0: the class is not in use
  void set_capacity(size_t entries) noexcept {
    capacity_ = static_cast<uint16_t>(entries);
    if (entries == 0) refilled_ = batches_ = cycles_ = 0;  // what an idle class did before says nothing
  }
  // How many blocks a refill should bring.
  size_t wanted(ClassIndex c) const noexcept {
    size_t least = std::min<size_t>(kMostWanted, capacity_ / 2 + 1);
    bool runs = refilled_ >= std::max(kLongRun, 4 * capacity());
    return runs ? std::clamp(kRunBytes / size_of(c), least, kMostWanted) : least;
  }
  bool builds() const noexcept { return refilled_ >= kBuilding; }
  bool feeds_other_threads() const noexcept { return refilled_ >= kProducer; }

  void on_refill(size_t blocks) noexcept {
    refilled_ = static_cast<uint16_t>(std::min<size_t>(refilled_ + blocks, UINT16_MAX));
    was_refilled_ = true;
  }
  void on_overflow() noexcept { overflowed_ = true; }
  // For the first overflow after refills.  Returns the capacity that the cache should have: the present one or more.
  size_t on_overflow_after_refills(ClassIndex c) noexcept {
    size_t batch = std::exchange(refilled_, uint16_t{0});
    batches_ = batch > capacity_ ? static_cast<uint8_t>(batches_ + 1) : uint8_t{0};
    bool too_small = batch >= kLongBatch || batches_ >= batches_to_grow(c), tight = ++cycles_ >= kCyclesToGrow;
    if (!too_small && !tight) return capacity_;
    batches_ = cycles_ = 0;
    size_t wanted = std::max<size_t>(too_small ? batch + batch / 8 : 0, tight ? capacity_ + capacity_ / 4 + 1 : 0);
    return std::max<size_t>(capacity_, std::min(wanted, max_capacity(index_of(c))));
  }
  // True if the class is idle, or if the process shrinks and blocks of this class are freed but not allocated: then
  // other heaps' blocks pass through the cache, and each block that stays in it pins its superblock.
  bool on_tick(size_t used, const void* newest, bool shrinks) noexcept {
    bool same = used == used_ && newest == top_block_;
    bool idle = (same || (shrinks && overflowed_)) && !was_refilled_;
    was_refilled_ = overflowed_ = false;
    used_ = static_cast<uint16_t>(used);
    top_block_ = newest;
    min_used_ = std::min(min_used_, used_);
    return idle;
  }
  void on_round() noexcept { cycles_ = batches_ = 0; }  // a count spread over several rounds means nothing
  // Half the entries that were in the cache at every tick since the last call, or 0: these were not needed.
  size_t take_surplus() noexcept { return std::exchange(min_used_, uint16_t{UINT16_MAX}) / 2u; }

 private:
  static constexpr size_t kLongBatch = 256;     // blocks; one such batch is enough to grow
  static constexpr uint8_t kCyclesToGrow = 16;  // times full, empty and full again
  // Batches in a row.  A superblock has few large blocks, so each of them costs more to find again.
  static constexpr uint8_t batches_to_grow(ClassIndex c) { return size_of(c) <= kKiB ? 6 : 1; }

  const void* top_block_ = nullptr;  // at the last tick
  uint16_t used_ = 0;                // entries at the last tick
  uint16_t min_used_ = UINT16_MAX;   // minimum of used_ in this round
  uint16_t capacity_ = 0;
  uint16_t refilled_ = 0;                           // blocks since the last overflow
  uint8_t batches_ = 0;                             // overflows in a row that indicated batches
  uint8_t cycles_ = 0;                              // overflows after refills since the cache grew or the round began
  bool was_refilled_ = false, overflowed_ = false;  // since the last tick
};

}  // namespace hm

// The state of every block: one byte outside the block.
//
//   FREE    in nobody's hands.  Only the thread that owns the superblock may change it (sweep).
//   TAKEN   in somebody's hands: in the program's, or in a block cache.  Only that holder may change it (give_back).
//   CACHED  in a block cache; told from TAKEN by the checked library alone.
//
// So a byte has one possible writer at any time and no read-modify-write is ever needed.  FREE is zero: fresh pages
// and purged ones hold free blocks only.
#pragma once
#include "base/sizes.h"

namespace hm {

class BlockState {
 public:
  enum Value : uint8_t { kFree = 0, kTaken = 1, kCached = 2 };
  constexpr BlockState() = default;
  constexpr explicit BlockState(Value value) noexcept : value_(value) {}

  // The holder of the block, who is the only possible writer: a plain read.
  bool is_free() const noexcept { return value_ == kFree; }
  bool is_cached() const noexcept { return value_ == kCached; }
  // Any thread that holds a block of the superblock; relaxed, for all that it learns is a hint.
  bool looks_free() const noexcept { return __atomic_load_n(&value_, __ATOMIC_RELAXED) == kFree; }
  // The holder, its last access to block and superblock.  Release: all that it did to the block comes before, for the
  // thread whose sweep sees FREE.
  void give_back() noexcept { __atomic_store_n(&value_, uint8_t{kFree}, __ATOMIC_RELEASE); }
  // The holder, moving the block between the program and its own cache (checked library); and the owner, taking a free
  // one.  Relaxed: the next to read it is the holder, or a sweep that does not care.
  void mark_cached() noexcept { __atomic_store_n(&value_, uint8_t{kCached}, __ATOMIC_RELAXED); }
  void mark_taken() noexcept { __atomic_store_n(&value_, uint8_t{kTaken}, __ATOMIC_RELAXED); }

 private:
  uint8_t value_;
};

// Eight states at a time, for the owner's sweep.  Bit 8k of a mask stands for block k.
class StateGroup {
 public:
  static constexpr size_t kBlocks = 8;
  static constexpr uint64_t kOnes = 0x0101010101010101;

  explicit StateGroup(BlockState* first) noexcept : first_(first) {}

  static size_t count(uint64_t mask) noexcept { return mask * kOnes >> 56; }
  // Acquire: pairs with give_back, so what the last holder did to the blocks happened before we hand them out.
  uint64_t free_mask() const noexcept {
    uint64_t word = __atomic_load_n(word_address(), __ATOMIC_ACQUIRE);
    uint64_t mask = ~(word | word >> 1) & kOnes;
    if (kThreadSanitizer) confirm(mask);
    return mask;
  }
  // Acquire: likewise.
  bool all_free() const noexcept {
    if (kThreadSanitizer) return free_mask() == kOnes;
    return __atomic_load_n(word_address(), __ATOMIC_ACQUIRE) == 0;
  }
  // Not zero in the bytes of those that are not FREE.  Any thread that holds a block of the superblock; relaxed, for all
  // that it learns is a hint.
  uint64_t taken() const noexcept { return __atomic_load_n(word_address(), __ATOMIC_RELAXED); }
  // The owner takes the free blocks of a mask for its cache.  Relaxed: nobody else may write a FREE byte, and the
  // program's own hand-over of the pointer publishes it.
  void take(uint64_t mask) noexcept {
    constexpr uint64_t value = kChecked ? BlockState::kCached : BlockState::kTaken;
    if (mask == kOnes) {
      __atomic_store_n(word_address(), kOnes * value, __ATOMIC_RELAXED);
      return;
    }
    for (; mask != 0; mask &= mask - 1) {
      BlockState& state = first_[std::countr_zero(mask) / 8];
      kChecked ? state.mark_cached() : state.mark_taken();
    }
  }

 private:
  // ThreadSanitizer pairs a release with an acquire of the same address only, not of the word around it.
  void confirm(uint64_t mask) const noexcept {
    for (; mask != 0; mask &= mask - 1)
      (void)__atomic_load_n(reinterpret_cast<uint8_t*>(first_) + std::countr_zero(mask) / 8, __ATOMIC_ACQUIRE);
  }
  using Word [[gnu::may_alias]] = uint64_t;
  Word* word_address() const noexcept { return reinterpret_cast<Word*>(first_); }

  BlockState* first_;
};
static_assert(sizeof(BlockState) == 1 && std::endian::native == std::endian::little);

}  // namespace hm

// The state of every block: one byte outside the block.
//
//   FREE    the block has no holder.  Only the thread that owns the superblock may change the byte (sweep).
//   TAKEN   the program or a block cache holds the block.  Only that holder may change the byte (give_back).
//   CACHED  a block cache or a quarantine holds it; only the checked and the hardened library tell this from TAKEN.  Or a
//           sampled block is being freed.
//   SAMPLED the program holds it, and a profile has it (profile/samples.h), or a tracer (probes.h).  Otherwise as TAKEN.
//   OWN     the program holds it, and it belongs to a heap of its own (threads/own_heaps.h): no cache ever has it.
//
// So each byte has one possible writer at any time, and no read-modify-write is needed, but for the end of SAMPLED and of OWN,
// and for a free that must be found to be the second of two at once.  FREE is zero, so fresh and purged pages hold only free
// blocks.  Bit 0 says TAKEN, so that free tells it from all others by one bit.
#pragma once
#include "base/sizes.h"

namespace hm {

class BlockState {
 public:
  enum Value : uint8_t { kFree = 0, kTaken = 1, kCached = 2, kSampled = 6, kOwn = 10 };  // bit 0 or 1: not FREE
  constexpr BlockState() = default;
  constexpr explicit BlockState(Value value) noexcept : value_(value) {}

  // For the block's holder, which is the only possible writer: a plain read.
  bool is_free() const noexcept { return value_ == kFree; }
  bool is_taken() const noexcept { return (value_ & kTaken) != 0; }
  bool is_cached() const noexcept { return value_ == kCached; }
  bool is_sampled() const noexcept { return value_ == kSampled; }
  // For any thread that holds a block of the superblock.  Relaxed: the result is only a hint.
  bool looks_free() const noexcept { return __atomic_load_n(&value_, __ATOMIC_RELAXED) == kFree; }
  // For any thread.  Relaxed: it may be another one by the time it is looked at.
  BlockState as_it_was() const noexcept {
    return BlockState(static_cast<Value>(__atomic_load_n(&value_, __ATOMIC_RELAXED)));
  }
  // For the holder; its last access to block and superblock.  Release: whatever it did to the block happens before the
  // sweep that sees FREE.
  void give_back() noexcept { __atomic_store_n(&value_, uint8_t{kFree}, __ATOMIC_RELEASE); }
  // For the holder, when it moves the block between the program and its own cache (checked library), and for the owner,
  // when it takes a free block.  Relaxed: the next reader is the holder, or a sweep, which treats both values alike.
  void mark_cached() noexcept { __atomic_store_n(&value_, uint8_t{kCached}, __ATOMIC_RELAXED); }
  void mark_taken() noexcept { __atomic_store_n(&value_, uint8_t{kTaken}, __ATOMIC_RELAXED); }
  // Hardened library: for any thread that frees the block; of any number at once, one gets it.  Relaxed: who frees a block has
  // seen what was done to it, or the program is wrong.
  bool take_back() noexcept { return replace(kTaken, kCached); }
  // For the thread that is about to hand the block to the program.  Relaxed: as above.
  void mark_sampled() noexcept { __atomic_store_n(&value_, uint8_t{kSampled}, __ATOMIC_RELAXED); }
  // For who frees it, and makes it TAKEN when all is done that the sample asks for: meanwhile it is neither TAKEN nor SAMPLED,
  // so that another free of it is found out, however long that takes.  False: this is that one.  Relaxed: the entry is read
  // under a lock.
  bool end_sample() noexcept { return replace(kSampled, kCached); }
  // For the holder of the lock of the heap that it belongs to.  Relaxed: as mark_taken.
  void mark_own() noexcept { __atomic_store_n(&value_, uint8_t{kOwn}, __ATOMIC_RELAXED); }
  // For who frees it, and then gives it back; of any number at once, one gets it.  Relaxed: as take_back.
  bool end_own() noexcept { return replace(kOwn, kCached); }

 private:
  bool replace(uint8_t expected, Value value) noexcept {
    return __atomic_compare_exchange_n(&value_, &expected, uint8_t{value}, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  }
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
  // Acquire, for the same reason.
  bool all_free() const noexcept {
    if (kThreadSanitizer) return free_mask() == kOnes;
    return __atomic_load_n(word_address(), __ATOMIC_ACQUIRE) == 0;
  }
  // Nonzero in the bytes of blocks that are not FREE.  For any thread that holds a block of the superblock.  Relaxed:
  // the result is only a hint.
  uint64_t taken() const noexcept { return __atomic_load_n(word_address(), __ATOMIC_RELAXED); }
  // The owner takes free blocks for its cache: all, or the one at k.  Relaxed: nobody else may write a FREE byte, and the
  // block is published when the program hands its pointer over.
  void take_all() noexcept {
    constexpr uint64_t value = kChecked ? BlockState::kCached : BlockState::kTaken;
    __atomic_store_n(word_address(), kOnes * value, __ATOMIC_RELAXED);
  }
  void take(size_t k) noexcept { kChecked ? first_[k].mark_cached() : first_[k].mark_taken(); }
  // For the holder, if nobody uses the blocks any more.  Relaxed: as take_all.
  void free_all() noexcept { __atomic_store_n(word_address(), uint64_t{0}, __ATOMIC_RELAXED); }

 private:
  // ThreadSanitizer pairs a release only with an acquire of the same address, not of the word around it.
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

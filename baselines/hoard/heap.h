// A heap: one of the processors' (1 to 2P), or the global one (0), which every thread may take from and give to (section 3).
//
// It has the superblocks that it owns, by size class and fullness, and the two usage statistics of the paper, in bytes:
//
//   u   in use
//   a   held in superblocks, counting of each only what its blocks add up to.  The paper counts S; but nobody can use the
//       header and the remainder, and a heap of full superblocks might count as too empty.
//
// Invariants, whenever nobody holds the heap's lock:
//
//   1.  A superblock is in one list of the heap that owns it: that of its class and fullness.
//   2.  u and a are the sums over the superblocks.
//   3.  A processor's heap, after a free: u >= a - K*S, or u >= (1 - f)*a.  Until the next free, malloc may add one
//       superblock of each size class that is not full.
//   4.  The global heap holds no superblock that is at most f empty.
//
// Section 3.1 prints an "and" between the halves of 3.  But the rule that it describes before, like line 9 of Fig. 2,
// moves superblocks when both are false, and so keeps only one of them true.  (The first block of a heap would violate
// the "and".)
#pragma once
#include <array>
#include <atomic>

#include "baselines/hoard/superblock.h"

namespace hm::hoard {

class Heap {
 public:
  constexpr Heap() = default;
  alignas(kLine) Lock lock;

  // For malloc, by the holder of the lock.
  Superblock* fullest_with_space(size_t size_class) noexcept;  // null: none has space
  void* take_block(Superblock& s) noexcept;

  // For free, by the holder of the lock.
  void put_block(Superblock& s, void* block) noexcept;
  bool crosses_emptiness_threshold() const noexcept { return is_too_empty(0); }  // the negation of invariant 3

  // Transfers, by the holder of the lock.  Null if there is none.
  Superblock* emptiest(size_t size_class) noexcept;  // one that is more than f empty, from the emptiest group
  Superblock* emptiest() noexcept;                   // the same, of any class
  Superblock* completely_empty() noexcept;           // of any class
  void insert(Superblock& s) noexcept;
  void remove(Superblock& s) noexcept;

  // For any thread, which sees what it was a moment ago: the number orders nothing.
  size_t u() const noexcept { return u_.load(std::memory_order_relaxed); }
  size_t a() const noexcept { return a_; }
  bool is_too_empty_for_malloc() const noexcept { return is_too_empty(classes.count() * options.superblock); }
  bool is_valid(bool global) const noexcept;

  // Calls function(superblock) for each.
  template <class Function>
  void for_each(Function function) noexcept {
    for (auto& group : groups_)
      for (size_t c = 0; c < classes.count(); ++c)
        for (Superblock* s = group[c].front(); s != nullptr; s = SuperblockList::after(s)) function(*s);
  }

  // Counted by malloc.
  uint64_t objects = 0;                        // allocated
  uint64_t objects_from_used_superblocks = 0;  // Table 3

 private:
  bool is_too_empty(size_t allowance) const noexcept;
  void link(Superblock& s) noexcept;
  void unlink(Superblock& s) noexcept { groups_[s.group()][s.size_class()].remove(s); }

  void set_u(size_t bytes) noexcept { u_.store(bytes, std::memory_order_relaxed); }  // for the holder of the lock

  std::atomic<size_t> u_{0};
  size_t a_ = 0;
  std::array<std::array<SuperblockList, kMaxClasses>, kGroups> groups_{};
};

// Holds the lock of a superblock's owner.  Before it is held, the superblock may move to another heap.
class [[nodiscard]] OwnerGuard {
 public:
  explicit OwnerGuard(const Superblock& s) noexcept;
  ~OwnerGuard() {
    if (mine_) heap_->lock.unlock();
  }
  OwnerGuard(const OwnerGuard&) = delete;
  OwnerGuard& operator=(const OwnerGuard&) = delete;
  Heap& heap() const noexcept { return *heap_; }

 private:
  Heap* heap_;
  bool mine_;
};

}  // namespace hm::hoard

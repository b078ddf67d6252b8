// A heap: a processor's own (1 to 2P), or the global one (0), which every thread may take from and give to (section 3).
//
// For each size class it has the superblocks that it owns, in fullness groups, and the two usage statistics of the
// paper.  These are in blocks of the class here: a superblock, S bytes in the paper, is n of them.  So one that is full
// is in use to the last byte, whatever its header and the blocks' size leave over.
//
//   u   blocks in use
//   a   blocks that the superblocks hold
//
// Invariants, whenever nobody holds the heap's lock:
//
//   1.  A superblock is in one list, that of its class and fullness, of the heap that is its owner.
//   2.  u and a are the sums over the superblocks of the class.
//   3.  Of a processor's heap, for each class: u >= a - K*n, or u >= (1 - f)*a.
//   4.  The global heap holds no superblock that is at most f empty.
//
// Section 3.1 prints an "and" between the halves of 3, but what it says before that is a rule that moves superblocks
// when both are false, as Fig. 2 does in line 9.  Such a rule keeps one of them true.  (The first block of a heap would
// break the "and": u is 1 then, and a is n.)  Why it holds for each class: README.md.
#pragma once
#include <array>

#include "classics/hoard/superblock.h"

namespace hm::hoard {

class Heap {
 public:
  constexpr Heap() = default;
  alignas(kLine) Lock lock;

  // malloc, for the holder of the lock.
  Superblock* fullest_with_space(size_t size_class) noexcept;  // null: none has space
  void* take_block(Superblock& s) noexcept;

  // free, for the holder of the lock.
  void put_block(Superblock& s, void* block) noexcept;
  bool crosses_emptiness_threshold(size_t size_class) const noexcept;

  // Transfers, for the holder of the lock.
  Superblock* emptiest(size_t size_class) noexcept;  // one that is more than f empty, from the emptiest group; or null
  Superblock* completely_empty() noexcept;           // of any class; or null
  void insert(Superblock& s) noexcept;
  void remove(Superblock& s) noexcept;

  size_t u(size_t size_class) const noexcept { return bins_[size_class].u; }
  size_t a(size_t size_class) const noexcept { return bins_[size_class].a; }
  size_t bytes_in_use() const noexcept;  // u of all classes

  bool is_not_too_empty(size_t size_class) const noexcept;  // invariant 3
  bool is_valid(bool global) const noexcept;

  // function(superblock), for each.
  template <class Function>
  void for_each(Function function) noexcept {
    for (size_t c = 0; c < classes.count(); ++c)
      for (SuperblockList& group : bins_[c].groups)
        for (Superblock* s = group.front(); s != nullptr; s = SuperblockList::after(s)) function(*s);
  }

  // Counted by malloc.
  uint64_t objects = 0;                        // allocated
  uint64_t objects_from_used_superblocks = 0;  // Table 3
  size_t last_sample = 0;                      // bytes_in_use() then; of the global heap's lock: see heaps.h

 private:
  struct Bin {
    size_t u = 0, a = 0;
    std::array<SuperblockList, kGroups> groups{};
  };
  bool is_valid(size_t size_class, bool global) const noexcept;
  void link(Superblock& s) noexcept;
  void unlink(Superblock& s) noexcept { bins_[s.size_class()].groups[s.group()].remove(s); }

  std::array<Bin, kClassesMost> bins_{};
};

// The lock of a superblock's owner.  Before it is held, the superblock may move to another heap.
class [[nodiscard]] OwnerGuard {
 public:
  explicit OwnerGuard(const Superblock& s) noexcept;
  ~OwnerGuard() { if (mine_) heap_->lock.unlock(); }
  OwnerGuard(const OwnerGuard&) = delete;
  OwnerGuard& operator=(const OwnerGuard&) = delete;
  Heap& heap() const noexcept { return *heap_; }

 private:
  Heap* heap_;
  bool mine_;
};

}  // namespace hm::hoard

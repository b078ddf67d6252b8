// The descriptors of all extents, and which of them has its block at an address.  They lie in mappings of their own between pages
// that nobody can touch, and these mappings stay: a descriptor can be read by whoever has found it.
//
// The table has two levels: a leaf answers for 512 chunks, 1 GB.  Whoever asks takes no lock; all else is under huge_lock.
#pragma once
#include <array>

#include "large/extent.h"

namespace hm {

class ExtentTable {
 public:
  // The descriptor of the extent that starts in the chunk of an address and has, or had last, a block; or null.  Any
  // thread, no lock: the answer holds for as long as the caller, by holding the block, keeps it true.
  Extent* find(uintptr_t address) const noexcept;

  // A descriptor in the caller's hands, for an extent that starts here; it owns nothing yet.  Null: no memory.
  Extent* create(char* start) noexcept;
  // Makes sure that an extent can start here.  False: no memory.
  bool reserve(const void* start) noexcept { return leaf_for(address_of(start)) != nullptr; }
  // Its block becomes known, or unknown again.  Also without the lock, by the thread that has it in its hands.
  void enter(Extent& extent) noexcept;
  void leave(const Extent& extent) noexcept;
  void release(Extent& extent) noexcept;  // it owns nothing any more, and its block is unknown

  size_t bytes() const noexcept { return pieces_ * kPiece; }  // of memory for all this
  template <class Visit>
  void for_each(Visit visit) noexcept {  // each descriptor in use
    for (Slab* slab = slabs_; slab != nullptr; slab = slab->next)
      for (Extent& extent : slab->extents)
        if (extent.state() != ExtentState::kUnused) visit(extent);
  }
  // In a child that was forked while another thread was in here: finds the free descriptors.
  void repair() noexcept;

 private:
  static constexpr size_t kPiece = 4 * kKiB;   // what leaves and slabs are cut out
  static constexpr size_t kArena = 64 * kKiB;  // what is mapped at a time
  struct Leaf {
    std::array<std::atomic<Extent*>, kPiece / sizeof(Extent*)> starts;
  };
  struct Slab {
    Slab* next;
    std::array<Extent, (kPiece - sizeof(Slab*)) / sizeof(Extent)> extents;
  };
  static_assert(sizeof(Leaf) == kPiece && sizeof(Slab) <= kPiece);
  static constexpr size_t kInLeaf = sizeof(Leaf) / sizeof(Extent*);
  static constexpr size_t kLeaves = AddressMap::kUnits / kInLeaf;
  static_assert(AddressMap::kUnits % kInLeaf == 0);

  Leaf* leaf_for(uintptr_t address) noexcept;
  std::atomic<Extent*>* place_of(uintptr_t address) const noexcept;  // null: no extent was ever near
  void* cut_piece() noexcept;
  bool add_slab() noexcept;

  std::array<std::atomic<Leaf*>, kLeaves> leaves_{};
  Slab* slabs_ = nullptr;
  Extent* free_ = nullptr;
  char* arena_ = nullptr;  // the one that pieces are cut from, from its end
  size_t arena_left_ = 0;  // in bytes
  size_t pieces_ = 0;
};

extern ExtentTable extent_table;

}  // namespace hm

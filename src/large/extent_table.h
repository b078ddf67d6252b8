// The descriptors of all extents, found by the address of their block.  They lie in mappings of their own between
// inaccessible pages.  These mappings stay, so whoever has found a descriptor can read it.
//
// The table has two levels; a leaf covers 512 chunks, 1 GB.  Lookups take no lock; all else is under huge_lock.
#pragma once
#include <array>

#include "large/extent.h"

namespace hm {

class ExtentTable {
 public:
  // The descriptor of the extent that starts in the address's chunk and has a block, or had one last; or null.  For any
  // thread, without a lock: the answer stays true as long as the caller holds the block.
  Extent* find(uintptr_t address) const noexcept;

  // A descriptor, held by the caller, for an extent that starts here; it owns nothing yet.  Null if there is no memory.
  Extent* create(char* start) noexcept;
  // Makes sure that an extent can start here.  False if there is no memory.
  bool reserve(const void* start) noexcept { return leaf_for(address_of(start)) != nullptr; }
  // Makes its block known, or unknown again; for the thread that holds the extent, with or without the lock.
  void enter(Extent& extent) noexcept;
  void leave(const Extent& extent) noexcept;
  void release(Extent& extent) noexcept;  // it must own nothing any more, and its block must be unknown

  size_t bytes() const noexcept { return pieces_ * kPiece; }  // memory for descriptors and table
  template <class Visit>
  void for_each(Visit visit) noexcept {  // each descriptor in use
    for (Slab* slab = slabs_; slab != nullptr; slab = slab->next)
      for (Extent& extent : slab->extents)
        if (extent.state() != ExtentState::kUnused) visit(extent);
  }
  // In a child that was forked while another thread used the table: rebuilds the list of free descriptors.
  void repair() noexcept;

 private:
  friend struct Layout;
  static constexpr size_t kPiece = 4 * kKiB;   // leaves and slabs are cut out of these
  static constexpr size_t kArena = 64 * kKiB;  // mapped at a time
  struct Leaf {
    std::array<std::atomic<Extent*>, kPiece / sizeof(Extent*)> starts;
  };
  static constexpr size_t kInSlab = (kPiece - sizeof(void*)) / sizeof(Extent);
  struct Slab {
    Slab* next;
    std::array<Extent, kInSlab> extents;
  };
  static_assert(sizeof(Leaf) == kPiece && sizeof(Slab) <= kPiece);
  static constexpr size_t kInLeaf = sizeof(Leaf) / sizeof(Extent*);
  static constexpr size_t kLeaves = AddressMap::kUnits / kInLeaf;
  static_assert(AddressMap::kUnits % kInLeaf == 0);

  Leaf* leaf_for(uintptr_t address) noexcept;
  std::atomic<Extent*>* place_of(uintptr_t address) const noexcept;  // null: there never was an extent nearby
  void* cut_piece() noexcept;
  bool add_slab() noexcept;

  std::array<std::atomic<Leaf*>, kLeaves> leaves_{};
  Slab* slabs_ = nullptr;
  Extent* free_ = nullptr;
  char* arena_ = nullptr;  // pieces are cut from its end
  size_t arena_left_ = 0;  // in bytes
  size_t pieces_ = 0;
};

extern ExtentTable extent_table;

}  // namespace hm

#include "large/extent_table.h"

#include <new>

namespace hm {

constinit ExtentTable extent_table;

// Acquire here and in find: leaves and descriptors are complete before they become known.
std::atomic<Extent*>* ExtentTable::place_of(uintptr_t address) const noexcept {
  size_t unit = address / kChunk;
  if (unit >= AddressMap::kUnits) return nullptr;
  Leaf* leaf = leaves_[unit / kInLeaf].load(std::memory_order_acquire);
  return leaf == nullptr ? nullptr : &leaf->starts[unit % kInLeaf];
}

Extent* ExtentTable::find(uintptr_t address) const noexcept {
  std::atomic<Extent*>* place = place_of(address);
  return place == nullptr ? nullptr : place->load(std::memory_order_acquire);
}

// One word says how much is left, and it is 0 while the arena changes, because a fork may come at any instruction.
// Relaxed when a piece is cut: the store that makes the piece known is a release.
void* ExtentTable::cut_piece() noexcept {
  if (arena_left_ == 0) {
    auto* arena = static_cast<char*>(os::map_guarded(kArena));
    if (arena == nullptr) return nullptr;
    arena_ = arena;
    std::atomic_ref(arena_left_).store(kArena, std::memory_order_release);
  }
  std::atomic_ref(arena_left_).store(arena_left_ - kPiece, std::memory_order_relaxed);
  ++pieces_;
  return arena_ + arena_left_;
}

ExtentTable::Leaf* ExtentTable::leaf_for(uintptr_t address) noexcept {
  std::atomic<Leaf*>& known = leaves_[address / kChunk / kInLeaf];
  Leaf* leaf = known.load(std::memory_order_relaxed);
  if (leaf != nullptr) return leaf;
  void* piece = cut_piece();
  if (piece == nullptr) return nullptr;
  leaf = new (piece) Leaf;  // all zeros, as the memory is
  known.store(leaf, std::memory_order_release);
  return leaf;
}

bool ExtentTable::add_slab() noexcept {
  void* piece = cut_piece();
  if (piece == nullptr) return false;
  auto* slab = new (piece) Slab;
  slab->next = slabs_;
  std::atomic_ref(slabs_).store(slab, std::memory_order_release);
  for (Extent& extent : slab->extents) {
    extent.next = free_;
    free_ = &extent;
  }
  return true;
}

Extent* ExtentTable::create(char* start) noexcept {
  if (!reserve(start) || (free_ == nullptr && !add_slab())) return nullptr;
  Extent* extent = free_;
  free_ = extent->next;
  extent->size = extent->dirty = extent->slack = 0;
  extent->lead = extent->guards = 0;
  extent->set_bytes(0);
  extent->set_start(start);
  extent->set_state(ExtentState::kHeld);
  return extent;
}

void ExtentTable::enter(Extent& extent) noexcept {
  place_of(address_of(extent.start()))->store(&extent, std::memory_order_release);
  AddressMap::set(extent.start(), ChunkKind::kHuge);
}

// Relaxed: a thread that finds null reads nothing through it.
void ExtentTable::leave(const Extent& extent) noexcept {
  AddressMap::set(extent.start(), ChunkKind::kGone);
  place_of(address_of(extent.start()))->store(nullptr, std::memory_order_relaxed);
}

void ExtentTable::release(Extent& extent) noexcept {
  extent.set_state(ExtentState::kUnused);
  extent.next = free_;
  free_ = &extent;
}

void ExtentTable::repair() noexcept {
  free_ = nullptr;
  for (Slab* slab = slabs_; slab != nullptr; slab = slab->next)
    for (Extent& extent : slab->extents) {
      if (extent.state() != ExtentState::kUnused) continue;
      extent.next = free_;
      free_ = &extent;
    }
}

}  // namespace hm

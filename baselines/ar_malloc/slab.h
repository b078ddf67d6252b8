// A slab: 64 KB cut into blocks of one size ("it uses slabs of a fixed size").
//
// A block never merges with its neighbours; the whole slab, once none of its blocks is in use, may serve another class.
// A bit for each block says whether it is free, as in jemalloc, so a slab can detect a double free.
#pragma once
#include <array>

#include "base/size_classes.h"

namespace hm::ar_malloc {

class Arena;

inline constexpr size_t kSlab = 64 * kKiB;
inline constexpr size_t kInSlabs = 8 * kKiB;  // the largest size that slabs serve
inline constexpr size_t kSlabClasses = index_of(class_of(kInSlabs)) + 1;

struct Slab {
  // Read by every thread that frees one of its blocks; changes only while none of its blocks is in use.
  Arena* arena;  // null: never used
  uint32_t block_size;
  uint32_t first;  // where the blocks begin
  uint32_t blocks;
  ClassIndex size_class;

  // Under the arena's lock.
  alignas(kLine) Slab* next;  // in its list of the arena
  Slab* previous;
  Slab* older;  // of all slabs of the arena
  uint32_t free;
  uint32_t hint;  // no block of an earlier word is free
  std::array<uint64_t, kSlab / kGranule / 64> is_free;

  static Slab& of(const void* block) noexcept { return *reinterpret_cast<Slab*>(align_down(address_of(block), kSlab)); }

  // Every block lies at a multiple of the largest power of two that divides its size, which suffices for aligned requests.
  static constexpr size_t first_block(size_t size) { return align_up(sizeof(Slab), size & -size); }

  void cut(Arena& owner, ClassIndex c) noexcept {
    arena = &owner;
    size_class = c;
    block_size = static_cast<uint32_t>(size_of(c));
    first = static_cast<uint32_t>(first_block(size_of(c)));
    blocks = free = (static_cast<uint32_t>(kSlab) - first) / block_size;
    hint = 0;
    is_free = {};
    for (uint32_t i = 0; i < blocks; ++i) is_free[i / 64] |= uint64_t{1} << i % 64;
  }

  // The lowest free block; there must be one.
  void* take() noexcept {
    while (is_free[hint] == 0) ++hint;
    uint32_t index = hint * 64 + static_cast<uint32_t>(std::countr_zero(is_free[hint]));
    is_free[hint] &= is_free[hint] - 1;
    --free;
    return reinterpret_cast<char*>(this) + first + size_t{index} * block_size;
  }

  void give_back(const void* block) noexcept {
    uint32_t index = index_of(block);
    is_free[index / 64] |= uint64_t{1} << index % 64;
    if (index / 64 < hint) hint = index / 64;
    ++free;
  }

  // For an address within the header the offset wraps around to more than the number of blocks.
  bool starts_block(const void* address) const noexcept {
    uint32_t offset = offset_of(address);
    return arena != nullptr && offset / block_size < blocks && offset % block_size == 0;
  }
  bool has_free(const void* block) const noexcept {
    return (is_free[index_of(block) / 64] >> index_of(block) % 64 & 1) != 0;
  }
  bool is_valid() const noexcept {
    uint32_t found = 0;
    for (uint64_t word : is_free) found += static_cast<uint32_t>(std::popcount(word));
    return found == free && free <= blocks;
  }

 private:
  uint32_t offset_of(const void* address) const noexcept {
    return static_cast<uint32_t>(address_of(address) % kSlab) - first;
  }
  uint32_t index_of(const void* block) const noexcept { return offset_of(block) / block_size; }
};

static_assert(size_of(ClassIndex(kSlabClasses - 1)) == kInSlabs);
static_assert(Slab::first_block(kInSlabs) + 7 * kInSlabs == kSlab);

// A doubly linked list of slabs.
struct SlabList {
  Slab* first = nullptr;

  void push(Slab& slab) noexcept {
    slab.previous = nullptr;
    slab.next = first;
    if (first != nullptr) first->previous = &slab;
    first = &slab;
  }
  void remove(Slab& slab) noexcept {
    (slab.previous == nullptr ? first : slab.previous->next) = slab.next;
    if (slab.next != nullptr) slab.next->previous = slab.previous;
  }
};

}  // namespace hm::ar_malloc

// The 213 malloc lab's allocator: segregated lists of free blocks, split on allocation, merged with their neighbours on
// free.  In Approach 1 there is one, the heap; from Approach 2 on each thread has one.  For one thread, or under a lock.
//
// S1  A block in these lists is free, as both its tags say, and is owned by this list.
// S2  No two neighbours in an arena are free.
#pragma once
#include "baselines/vvmalloc/free_lists.h"

namespace hm::vvmalloc {

// The gap at a free block's start for a payload's alignment, above 16: nothing, or enough for a block.
inline size_t lead_of(Block* free, size_t alignment) noexcept {
  uintptr_t payload = address_of(free->payload());
  size_t lead = align_up(payload, alignment) - payload;
  return lead > 0 && lead < kMin ? lead + alignment : lead;
}

class SegregatedList {
 public:
  constexpr explicit SegregatedList(ListId id) : id_(id) {}

  ListId id() const noexcept { return id_; }

  // A used block of at least this size.  Null if none of the free ones is large enough.
  Block* allocate(size_t size) noexcept;
  // The same with a payload of this alignment, above 16.  It needs a free block of aligned_size().
  Block* allocate_aligned(size_t alignment, size_t size) noexcept;
  static constexpr size_t aligned_size(size_t alignment, size_t size) { return size + alignment + kGranule; }

  // Frees a block of one of this list's arenas and merges it with its free neighbours (coalescing); puts it into no list.
  Block* release(Block* block) noexcept;
  void insert(Block* free) noexcept { lists_.insert(free); }
  bool has(size_t size) noexcept { return lists_.find(size) != nullptr; }

  // S1 and S2 for every block in the lists.  free_blocks: adds their number.
  bool is_valid(size_t* free_blocks) const noexcept;

 private:
  Block* take(Block* free, size_t lead, size_t size) noexcept;

  ListId id_;
  FreeLists lists_;
};

}  // namespace hm::vvmalloc

// Blocks above 1 MB: each in an extent (extent.h).  Any thread.
//
// A freed extent is kept for a while if the program has lately asked the system for what it had just given back.  The next
// block gets what it needs of one; if all are too short, the longest is stretched, by moving its pages.  All that is kept is
// at most kMaxKept or what makes all huge memory 3/2 of its peak, and what the system refuses to take.
#pragma once
#include "base/lock.h"
#include "base/sizes.h"
#include "large/extent_retention.h"

namespace hm {

struct FreshBlock {
  void* block;   // null: no memory
  size_t dirty;  // from its start; what follows reads as zero
};

FreshBlock allocate_huge(size_t size, size_t alignment, bool map) noexcept;  // map: from new memory, if need be

struct Extent;
Extent* huge_extent(const void* block) noexcept;  // null if block does not start one
size_t huge_capacity(const Extent& extent) noexcept;
size_t huge_size(const Extent& extent) noexcept;  // as asked for
bool huge_is_live(const Extent& extent) noexcept;
bool free_huge(Extent& extent) noexcept;  // false: somebody else has
// In place, or by moving the pages; the block's new address, or null: unchanged.
void* resize_huge(Extent& extent, size_t size) noexcept;

size_t purge_huge_blocks(bool all) noexcept;  // what is kept; returns bytes
Lock& huge_lock() noexcept;
// In the child of a fork, for its only thread, if the lock's holder is not there: makes lists and counts anew from the
// descriptors.  What was in other threads' hands is lost.  The lock must be free, or the caller's.
void huge_repair() noexcept;
bool huge_is_valid() noexcept;  // while no other thread is in here

struct HugeGauges {  // bytes
  size_t blocks;     // their number
  size_t mapped, kept, active, max_active;
  size_t descriptors;  // and the table that finds them
};
HugeGauges huge_gauges() noexcept;

}  // namespace hm

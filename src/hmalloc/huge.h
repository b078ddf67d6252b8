// Blocks above 1 MB: each in an extent (extent.h).  Any thread.
//
// A freed extent is kept for a while if the program has lately asked the system for what it had just given back.  The next
// block gets what it needs of one; if all are too short, the longest is stretched, by moving its pages.  All that is kept is
// at most kKeepMost or what makes all huge memory 3/2 of its peak, and what the system refuses to take.
#pragma once
#include "base/lock.h"
#include "base/sizes.h"

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
void free_huge(Extent& extent) noexcept;
// In place, or by moving the pages; the block's new address, or null: unchanged.
void* resize_huge(Extent& extent, size_t size) noexcept;

size_t purge_huge_blocks(bool all) noexcept;  // what is kept; returns bytes
Lock& huge_lock() noexcept;
// In the child of a fork, under the lock: a thread held it that is not there, and was cut off at any instruction.
// Afterwards everything under the lock is valid; what that thread had in its hands may be lost.
void huge_repair() noexcept;
bool huge_is_valid() noexcept;  // while no other thread is in here

struct HugeGauges {  // bytes
  size_t blocks;  // their number
  size_t mapped, kept, active, most_active;
};
HugeGauges huge_gauges() noexcept;

inline constexpr size_t kKeepMost = 64 * kMiB;

}  // namespace hm

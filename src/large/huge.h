// Blocks above 1 MB, each in an extent (extent.h); in the hardened library those above 32 KB (guarded.cc).  For any thread.
//
// Freed extents are cached for a while once the program has shown that it re-allocates what it frees.  The next block gets
// the part of one that it needs; if all are too short, the longest is stretched by moving its pages.  The cache holds at
// most kMaxKept, or what makes all huge memory 3/2 of its peak if that is more; extents that munmap refuses come on top.
#pragma once
#include "base/lock.h"
#include "base/sizes.h"
#include "large/extent_retention.h"

namespace hm {

struct FreshBlock {
  void* block;   // null if there is no memory
  size_t dirty;  // bytes from its start; what follows reads as zero
};

FreshBlock allocate_huge(size_t size, size_t alignment, bool map) noexcept;  // map: may map new memory

struct Extent;
Extent* huge_extent(const void* block) noexcept;  // null if block does not start one
size_t huge_capacity(const Extent& extent) noexcept;
size_t huge_size(const Extent& extent) noexcept;  // as requested
bool huge_is_live(const Extent& extent) noexcept;
bool free_huge(Extent& extent) noexcept;  // false: another thread has freed it
// In place, or by moving its pages.  Returns the block's address, or null if it is unchanged.
void* resize_huge(Extent& extent, size_t size) noexcept;

size_t purge_huge_blocks(bool all) noexcept;  // all that is kept, or what is due; returns bytes
// Before a request is refused: the addresses between the ends of blocks and of their last chunks.
void unmap_behind_huge_blocks() noexcept;
Lock& huge_lock() noexcept;
// In the child of a fork, for its only thread, if the child lacks the lock's holder: rebuilds lists and counts from the
// descriptors.  What other threads held is lost.  The lock must be free, or held by the caller.
void huge_repair() noexcept;
void huge_forget_promises() noexcept;  // in any child, for its only thread
// Hardened library: end the program if one was written to after it was freed, or outside of one that is live.  The second
// returns how many are, and may be called while other threads use them; its message names the function.
void check_freed_huge_blocks() noexcept;
size_t check_live_huge_blocks(const char* function) noexcept;
bool huge_is_valid() noexcept;  // no other thread may use this meanwhile

struct HugeGauges {  // bytes
  size_t blocks;     // their number
  size_t mapped, kept, active, max_active;
  size_t descriptors;  // and the table that finds them
};
HugeGauges huge_gauges() noexcept;

}  // namespace hm

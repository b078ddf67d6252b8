// Blocks above 1 MB.  Any thread.
//
// A huge block has an extent to itself: whole chunks of 2 MB with a page of metadata in the first; the block begins one
// slice further, or at the next multiple of a larger alignment.  A freed extent may be kept for a while, joined with its
// kept neighbours; the next block gets the part of it that it needs.
#pragma once
#include "base/lock.h"
#include "base/sizes.h"

namespace hm {

struct FreshBlock {
  void* block;   // null: no memory
  size_t dirty;  // from its start; what follows reads as zero
};

FreshBlock allocate_huge(size_t size, size_t alignment) noexcept;

struct HugeHeader;
HugeHeader* huge_header(const void* block) noexcept;  // null if block does not start one
size_t huge_capacity(const HugeHeader& header) noexcept;
size_t huge_size(const HugeHeader& header) noexcept;  // as asked for
bool huge_is_live(const HugeHeader& header) noexcept;
void free_huge(HugeHeader& header) noexcept;
// In place, or by moving the pages; the block's new address, or null: unchanged.
void* resize_huge(HugeHeader& header, size_t size) noexcept;

size_t purge_huge_blocks(bool all) noexcept;  // kept extents; returns bytes
Lock& huge_lock() noexcept;
size_t huge_bytes() noexcept;  // of blocks and kept extents; a hint

struct HugeGauges {  // bytes
  size_t blocks;  // their number
  size_t mapped, kept, active, most_active;
};
HugeGauges huge_gauges() noexcept;

inline constexpr size_t kKeepMost = 64 * kMiB;  // bytes of kept extents

}  // namespace hm

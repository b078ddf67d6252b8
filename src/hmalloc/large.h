// Blocks above 32 KB: runs of slices inside chunks up to 1 MB, mappings of their own above.  Any thread.
//
// A mapping of its own starts at a multiple of 2 MB with a page of metadata; the block begins one slice further, or,
// for alignments of 2 MB and more, at the next 2 MB.
#pragma once
#include <array>

#include "base/lock.h"
#include "hmalloc/superblock.h"

namespace hm {

inline constexpr size_t kLargeMax = 1 * kMiB;

struct LargeBlock {
  void* block;  // null: no memory
  bool zeroed;
};
LargeBlock allocate_large(size_t size, size_t alignment) noexcept;

// Runs of slices.
size_t large_capacity(const Superblock& sb) noexcept;
void free_large(Superblock& sb) noexcept;
bool resize_large(Superblock& sb, size_t size) noexcept;  // in place

// Runs that a thread freed last, for its next requests of their lengths: a program that keeps asking for 64 KB should not
// take a lock each time.  Of a heap; bytes() is for any thread.
class LargeCache {
 public:
  static constexpr size_t kMostBytes = 16 * kSlice;
  LargeBlock take(size_t size) noexcept;  // null: none is of this length
  bool keep(Superblock& run) noexcept;    // false: there is no room for it
  void tick() noexcept;                   // what has not been used for a tick goes back
  void release_all() noexcept;
  size_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  void remove(size_t i) noexcept;
  std::array<Superblock*, 4> runs_{};  // the last one was freed last
  size_t count_ = 0;
  std::atomic<size_t> bytes_{0};
  bool used_ = false;
};

// Mappings.  Null if block does not start one.
struct HugeHeader;
HugeHeader* huge_header(const void* block) noexcept;
size_t huge_capacity(const HugeHeader& header) noexcept;
size_t huge_size(const HugeHeader& header) noexcept;  // as asked for
bool huge_is_live(const HugeHeader& header) noexcept;
void free_huge(HugeHeader& header) noexcept;
// In place, or by moving the pages; the block's new address, or null: unchanged.
void* resize_huge(HugeHeader& header, size_t size) noexcept;

size_t purge_huge_blocks(bool all) noexcept;  // kept free mappings; returns bytes
Lock& huge_lock() noexcept;
size_t huge_bytes() noexcept;  // of all mappings; any thread, a hint
struct HugeGauges {
  size_t mappings, bytes, active_bytes, most_active_bytes;
};
HugeGauges huge_gauges() noexcept;

inline constexpr size_t kKeepMost = 64 * kMiB;  // bytes of freed mappings of recurring sizes that are kept for the decay time

}  // namespace hm

// What statistics are made of, counted on request: the fast paths count nothing.
#pragma once
#include <hmalloc/hmalloc.h>

#include <array>

#include "large/extent_retention.h"
#include "threads/thread_heap.h"

namespace hm {

// What may be held beyond the program's own peak, in bytes: a quarter of that, and this (docs/design.md, "Footprint").
inline constexpr size_t kBoundOfProcess = 2 * kChunk + kMaxKept;
consteval size_t bound_of_heap() {  // without its caches of small blocks
  size_t slices = (ThreadHeap::kMaxFull + ThreadHeap::kProducerReuseDistance) * slices_of(ClassIndex{kClasses - 1});
  for (size_t c = 0; c < kClasses; ++c) slices += slices_of(ClassIndex(c));
  return LargeCache::kMaxBytes + slices * kSlice;
}

// Of a heap of the program's own: what it allocates from now.
consteval size_t bound_of_own_heap() {
  size_t slices = 0;
  for (size_t c = 0; c < kClasses; ++c) slices += slices_of(ClassIndex(c));
  return slices * kSlice;
}

struct ClassGauges {
  uint64_t superblocks, held_blocks, cached_blocks;  // held: by the program or by a cache
};
struct Census {
  hm_stats total{};
  std::array<ClassGauges, kClasses> classes{};
  uint64_t active_in_superblocks = 0;
  uint64_t cached_runs = 0;  // bytes
  uint64_t large_blocks = 0, large_bytes = 0;
};

// For any thread; takes the locks of what it counts, one after another.
Census take_census() noexcept;

}  // namespace hm

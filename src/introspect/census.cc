#include "introspect/census.h"

#include "base/os_pages.h"
#include "core/superblock_pool.h"
#include "guard/guarded_blocks.h"
#include "large/huge.h"
#include "large/runs.h"
#include "pages/footprint.h"
#include "pages/options.h"
#include "pages/slice_pool.h"
#include "threads/own_heaps.h"
#include "threads/registry.h"

namespace hm {
namespace {

void count_slices(Census& census) noexcept {
  slice_pool.for_each([&](Slice& first) {
    if (first.kind() == SliceKind::kLarge) {
      ++census.large_blocks;
      census.large_bytes += large_capacity(first);
      return;
    }
    Superblock& sb = Superblock::of(first);
    ClassGauges& gauges = census.classes[index_of(sb.class_index())];
    size_t held = sb.blocks - sb.free_blocks();
    ++gauges.superblocks;
    gauges.held_blocks += held;
    if (held > 0) census.active_in_superblocks += slices_of(sb.class_index()) * kSlice;
  });
}

void count_heaps(Census& census) noexcept {
  registry.for_each([&](ThreadHeap& heap) {
    ++census.total.heaps;
    census.total.live_heaps += heap.live;
    census.total.refills += heap.refills.get();
    census.total.flushes += heap.flushes.get();
    census.total.cross_thread_frees += heap.cross_thread_frees.get();
    census.total.metadata += sizeof(ThreadHeap);
    if (heap.shelf.stranded) return;
    for (size_t c = 0; c < kClasses; ++c) {
      size_t cached = heap.cached_blocks(c);
      census.classes[c].cached_blocks += cached;
      census.total.cached += cached * kClassSize[c];
    }
    census.cached_runs += heap.large.bytes();
  });
}

uint64_t bound_beyond(uint64_t peak, uint64_t huge_peak, uint64_t heaps, uint64_t own_heaps) noexcept {
  uint64_t of_heaps = heaps * (options.cache_bytes + bound_of_heap()) + own_heaps * bound_of_own_heap();
  return (peak + huge_peak) / 4 + of_heaps + kBoundOfProcess;
}

}  // namespace

Census take_census() noexcept {
  Census census;
  hm_stats& total = census.total;
  total.cross_thread_frees = footprint.cross_thread_frees();
  count_slices(census);
  count_heaps(census);
  uint64_t own = 0;
  own_heaps.for_each([&](const OwnHeap&) { ++own; });
  HugeGauges huge = huge_gauges();
  SlicePool::Gauges slices = slice_pool.gauges();
  uint64_t held = 0;
  for (size_t c = 0; c < kClasses; ++c) held += census.classes[c].held_blocks * kClassSize[c];
  size_t guarded_pages = guarded_blocks.live() * os::page_size();
  total.active += census.active_in_superblocks + census.large_bytes + huge.active + guarded_pages;
  total.allocated =
      (held > total.cached ? held - total.cached : 0) + census.large_bytes + huge.active + guarded_blocks.bytes();
  total.cached += census.cached_runs;
  total.mapped += slices.chunks * kChunk + slices.space + huge.mapped + guarded_blocks.mapped() + own_heaps.mapped();
  total.metadata += slices.chunks * kSlicesInChunk * sizeof(Slice) + huge.descriptors + own_heaps.places() * kOwnHeapPlace;
  for (size_t c = 0; c < kClasses; ++c) total.metadata += census.classes[c].superblocks * blocks_of(ClassIndex(c));
  uint64_t superblocks = 0;
  for (size_t c = 0; c < kClasses; ++c) superblocks += census.classes[c].superblocks * slices_of(ClassIndex(c)) * kSlice;
  total.resident = superblocks + census.large_bytes + census.cached_runs + total.metadata + slices.dirty_slices * kSlice +
                   huge.active + huge.kept + guarded_pages;
  total.active += census.cached_runs;
  total.retained = total.mapped > total.active + total.metadata ? total.mapped - total.active - total.metadata : 0;
  total.purged = footprint.purged();
  total.os_calls = os::calls();
  total.peak_active = std::max(total.active, slices.max_used_slices * kSlice + huge.max_active);
  total.bound = bound_beyond(total.peak_active, huge.max_active, total.heaps, own);
  return census;
}

}  // namespace hm

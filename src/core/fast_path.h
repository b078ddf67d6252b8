// malloc and free of small blocks: the two fast paths and the guards that leave them.
//
// allocate:   size -> class -> pop the block cache.
// deallocate: ours? -> descriptor -> which block, and is this its start? -> TAKEN? -> push it onto the block cache; if a
//             batch has filled the cache and the heap owns the block, the block becomes FREE instead.
// Neither takes a lock or does an atomic read-modify-write, whoever owns the block.
#pragma once
#include "base/codegen.h"
#include "core/small_heap.h"

namespace hm {

// The slow paths serve blocks of any kind, so they are defined above the core (api/allocator.cc).
HM_NOINLINE void* allocate_slow(size_t size) noexcept;
HM_NOINLINE void* allocate_sample(size_t size, void* block, Countdown& countdown) noexcept;  // perhaps
HM_NOINLINE void free_slow(void* block, const char* function) noexcept;
HM_NOINLINE void free_on_full_cache(void* block, Superblock& sb, BlockState& state) noexcept;

// The cache that was found has no block; or, while allocations are counted, is none.
[[gnu::always_inline]] inline void* allocate_missed(size_t size, BlockCache& found, void** found_top) noexcept {
  if (!Countdown::is_behind(found_top)) return allocate_slow(size);
  Countdown& countdown = Countdown::of(found);
  BlockCache& cache = countdown.cache();
  void** top = cache.top();
  void* block = *top;
  if (HM_UNLIKELY(block == nullptr)) return allocate_slow(size);
  cache.set_top(top - 1);
  if constexpr (kChecked) find_block(block).state.mark_taken();
  return HM_UNLIKELY(countdown.count()) ? allocate_sample(size, block, countdown) : block;
}

inline void* allocate(size_t size) noexcept {
  size_t index = hide_from_optimizer((size - 1) / kGranule);  // size 0 wraps around and takes the slow path
  if (HM_UNLIKELY(index >= kCacheOffset.size())) return allocate_slow(size);
  BlockCache& cache = my_heap()->cache(empty_heap.cache_offset(index));
  void** top = cache.top();
  void* block = cache.pop(top);
  if (HM_UNLIKELY(block == nullptr)) return allocate_missed(size, cache, top);
  if constexpr (kChecked) find_block(block).state.mark_taken();
  return block;
}

// function: the entry point, for the message that ends the program on a bad pointer.
[[gnu::always_inline]] inline void deallocate(void* block, const char* function) noexcept {
  uintptr_t address = address_of(block);
  if (HM_UNLIKELY(AddressMap::kind(address) != ChunkKind::kSlices)) return free_slow(block, function);
  Superblock& sb = Superblock::of(address);
  BlockPlace place(sb, address);
  if (HM_UNLIKELY(!place.exact())) return free_slow(block, function);
  BlockState& state = sb.states[place.index()];
  if (HM_UNLIKELY(!state.is_taken())) return free_slow(block, function);
  if constexpr (kChecked) state.mark_cached();
  BlockCache& cache = my_heap()->cache(sb.cache_offset);
  void** top = cache.top();
  if (HM_UNLIKELY(*top == block)) return free_slow(block, function);
  if (HM_LIKELY(cache.push(top, block))) return;
  if (HM_UNLIKELY(!SmallHeap::give_back_own(sb, state, cache))) free_on_full_cache(block, sb, state);
}

}  // namespace hm

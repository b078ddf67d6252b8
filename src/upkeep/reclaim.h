// Giving memory back to the system: after some time, and on request.
#pragma once
#include "threads/thread_heap.h"

namespace hm {

// Called at ticks of any heap: now and then looks through the pool, the heaps of ended threads and freed slices.
void reclaim_due(uint64_t now_ms) noexcept;
// After slow-path operations of a heap, by the thread that uses it.
HM_COLD void upkeep(ThreadHeap& heap) noexcept;
// After a number of frees by a thread that has no heap.
HM_COLD void upkeep_without_heap() noexcept;
void look_without_heap() noexcept;  // after large blocks, which come and go: they do not tell that the process shrinks
inline void tick(ThreadHeap& heap) noexcept {
  if (heap.upkeep_is_due()) upkeep(heap);
}
inline void tick_after_large(ThreadHeap& heap, size_t bytes) noexcept {
  if (heap.upkeep_is_due_after_large(bytes)) upkeep(heap);
}
// A whole round, for the background thread.  True if memory went back.
bool background_round() noexcept;
// Gives back everything now (malloc_trim, hm_collect).  True if memory went back.
bool reclaim_all() noexcept;
// The same and all addresses that nobody uses, before a request is refused.
void reclaim_before_refusal() noexcept;

}  // namespace hm

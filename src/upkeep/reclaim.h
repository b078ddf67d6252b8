// Memory back to the system: in time, and on request.
#pragma once
#include "threads/thread_heap.h"

namespace hm {

// From ticks of any heap: once in a while, looks through the pool, ended threads' heaps and freed slices.
void reclaim_due(uint64_t now_ms) noexcept;
// After a slow operation of a heap, by the thread that uses it.
HM_COLD void upkeep(ThreadHeap& heap) noexcept;
// After a number of frees by a thread that has no heap.
HM_COLD void upkeep_without_heap() noexcept;
inline void tick(ThreadHeap& heap, uint32_t operations = 1) noexcept {
  if (heap.tick_is_due(operations)) upkeep(heap);
}
// A whole round by the background thread.  True if memory went back.
bool background_round() noexcept;
// All of it, now (malloc_trim, hm_collect).  True if memory went back.
bool reclaim_all() noexcept;

}  // namespace hm

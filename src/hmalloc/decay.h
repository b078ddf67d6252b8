// Memory back to the system: in time, and on request.
#pragma once
#include "hmalloc/thread_heap.h"

namespace hm {

// From ticks of any heap: once in a while, looks through the pool, ended threads' heaps and freed slices.  The heap has
// given `bytes` of its local memory back itself.
void decay(uint64_t now_ms, size_t bytes) noexcept;
// After a slow operation of a heap, by the thread that uses it.
HM_COLD void look_after(ThreadHeap& heap) noexcept;
inline void tick(ThreadHeap& heap) noexcept {
  if (heap.tick_is_due()) look_after(heap);
}
// A whole round by the scavenger's thread.  True if memory went back.
bool scavenge() noexcept;
// All of it, now (malloc_trim, hm_collect).  True if memory went back.
bool collect() noexcept;
uint64_t purged_bytes() noexcept;  // so far

}  // namespace hm

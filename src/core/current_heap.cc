#include "core/current_heap.h"

namespace hm {

// Relaxed: both caches that a request may be sent to are there as long as the heap is.
void count_allocations(bool on) noexcept {
  counting.set(on);
  auto name = [on](uint16_t& entry, uint16_t offset) {
    __atomic_store_n(&entry, on ? kNoCacheOffset : offset, __ATOMIC_RELAXED);
  };
  for (size_t i = 0; i < kCacheOffset.size(); ++i) name(empty_heap.offsets[i], kCacheOffset[i]);
  for (size_t i = 0; i < kSharedCacheOffset.size(); ++i) name(empty_heap.shared_offsets[i], kSharedCacheOffset[i]);
}

}  // namespace hm

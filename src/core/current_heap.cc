#include "core/current_heap.h"

namespace hm {

// Release: the countdowns were opened before.  Who reads an entry takes from it the address of a countdown, so no later read
// of that one comes too early.
void count_allocations(bool on) noexcept {
  counting.set(on);
  auto name = [on](uint16_t& entry, uint16_t offset) {
    __atomic_store_n(&entry, static_cast<uint16_t>(on ? offset + Countdown::kDistance : offset), __ATOMIC_RELEASE);
  };
  for (size_t i = 0; i < kCacheOffset.size(); ++i) name(empty_heap.offsets[i], kCacheOffset[i]);
  for (size_t i = 0; i < kSharedCacheOffset.size(); ++i) name(empty_heap.shared_offsets[i], kSharedCacheOffset[i]);
}

}  // namespace hm

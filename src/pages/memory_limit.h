// HMALLOC_LIMIT: how much memory of the allocator's may be resident, by its own upper estimate (Footprint::resident).
// Whoever is about to make pages resident asks first; what is resident already is used again without being asked for.
#pragma once
#include <algorithm>

#include "pages/footprint.h"
#include "pages/options.h"

namespace hm {

class MemoryLimit {
 public:
  constexpr explicit MemoryLimit(size_t bytes) : hard_(bytes) {}  // 0: there is none
  constexpr bool is_set() const { return hard_ != 0; }
  // Above this nothing that is free is kept, and what other threads keep goes back each time that a step more is resident.
  constexpr size_t soft() const { return hard_ - hard_ / 8; }
  constexpr size_t step() const { return hard_ / 64; }
  // The last bytes below the limit are for small blocks alone (up to kOneSliceMax), so that a program that was refused a
  // large one can go on, or end in good order.
  constexpr size_t reserve() const { return std::clamp(hard_ / 32, kMiB, 32 * kMiB); }
  constexpr bool admits(size_t resident, size_t more, bool small) const {
    size_t most = small ? hard_ : hard_ - reserve();
    return !is_set() || (resident <= most && more <= most - resident);
  }

 private:
  size_t hard_;
};

inline MemoryLimit memory_limit() noexcept { return MemoryLimit(options.limit); }
inline bool limit_admits(size_t more, bool small) noexcept {
  return options.limit == 0 || memory_limit().admits(footprint.resident(), more, small);
}

// Whether it is, or would be with so many bytes more.
inline bool is_above_soft_limit(size_t more = 0) noexcept {
  return options.limit != 0 && footprint.resident() + more > memory_limit().soft();
}

}  // namespace hm

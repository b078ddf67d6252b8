// How much one heap may keep in caches for its next requests.  With many threads that is less for each, so that what all of
// them keep stays in proportion to what the process uses; up to four threads have as much as they ever want.  A
// thousand threads, most of which sleep, must not slow down the few that work: each may have a little in any case.
#pragma once
#include <algorithm>

#include "pages/footprint.h"
#include "pages/options.h"
#include "pages/slice_pool.h"

namespace hm {

inline constexpr size_t kSharedCacheBytes = 24 * kMiB;  // all heaps together may keep so much in any case
inline constexpr size_t kLeastCacheBytes = 64 * kKiB;   // and each one so much

inline size_t cache_budget() noexcept {
  size_t together = std::max(kSharedCacheBytes, slice_pool.used() * kSlice / 8);
  return std::min(options.cache_bytes, std::max(together / std::max(footprint.heaps(), size_t{1}), kLeastCacheBytes));
}

}  // namespace hm

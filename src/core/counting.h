// Counting allocations for a profile (profile/sampler.h), without a counter on the fast path.
//
// While allocations are counted, the tables of classes send every request to a cache that has no block and no room.  So
// malloc takes its slow path, which counts, and pops the cache that free has filled: free finds that one by the block's
// superblock, and is as it was.  Whoever else finds a cache by a size, as a sized free does, fails there and goes the long way.
#pragma once
#include <atomic>

#include "base/size_classes.h"

namespace hm {

inline constexpr uint16_t kNoCacheOffset = kClasses * kCacheStride;  // behind the caches of each heap

class Counting {
 public:
  // Relaxed: whoever reads it late allocates a little that is not counted.
  bool is_on() const noexcept { return on_.load(std::memory_order_relaxed); }
  void set(bool on) noexcept { on_.store(on, std::memory_order_relaxed); }  // for count_allocations (current_heap.h)

 private:
  std::atomic<bool> on_{false};
};
inline constinit Counting counting;

// How many bytes a thread may allocate before it takes a sample.  Relaxed: another thread only has it drawn anew.
class BytesToSample {
 public:
  // True if the sample is due, or was never drawn.
  bool count(size_t bytes) noexcept {
    int64_t left = left_.load(std::memory_order_relaxed) - static_cast<int64_t>(bytes);
    left_.store(left, std::memory_order_relaxed);
    return HM_UNLIKELY(left < 0);
  }
  bool is_drawn() const noexcept { return left_.load(std::memory_order_relaxed) > kNotDrawn / 2; }
  void set(int64_t bytes) noexcept { left_.store(bytes, std::memory_order_relaxed); }
  void forget() noexcept { set(kNotDrawn); }

 private:
  static constexpr int64_t kNotDrawn = INT64_MIN / 2;
  std::atomic<int64_t> left_{kNotDrawn};
};

}  // namespace hm

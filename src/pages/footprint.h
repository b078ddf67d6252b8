// The system's memory that the allocator holds, as hints: each part publishes its bytes, growth policies add them up.
#pragma once
#include <atomic>

#include "base/sizes.h"

namespace hm {

class Footprint {
 public:
  // Relaxed: a hint.
  size_t huge() const noexcept { return huge_.load(std::memory_order_relaxed); }
  void set_huge(size_t bytes) noexcept { huge_.store(bytes, std::memory_order_relaxed); }
  // In slices, used or dirty.  Relaxed: a hint, stored under the slice pool's lock.
  void set_slices(size_t bytes) noexcept { slices_.store(bytes, std::memory_order_relaxed); }
  // All blocks and what is kept of freed ones, without metadata: an upper estimate.
  size_t resident() const noexcept { return huge() + slices_.load(std::memory_order_relaxed); }
  // Small blocks freed by threads that have no heap to count them.  Relaxed: the number is for statistics, and the bytes,
  // at most so many, are a hint whether anything is to be found.
  uint64_t cross_thread_frees() const noexcept { return cross_thread_frees_.load(std::memory_order_relaxed); }
  uint64_t cross_thread_bytes() const noexcept { return cross_thread_bytes_.load(std::memory_order_relaxed); }
  void count_cross_thread_frees(uint32_t n, size_t bytes) noexcept {
    cross_thread_frees_.fetch_add(n, std::memory_order_relaxed);
    cross_thread_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  // Heaps that threads use.
  size_t heaps() const noexcept { return heaps_.load(std::memory_order_relaxed); }
  void set_heaps(size_t n) noexcept { heaps_.store(n, std::memory_order_relaxed); }
  // Total given back to the system; relaxed: a sum for statistics.
  uint64_t purged() const noexcept { return purged_.load(std::memory_order_relaxed); }
  void count_purged(size_t bytes) noexcept { purged_.fetch_add(bytes, std::memory_order_relaxed); }
  // Total of holes in superblocks that heaps have taken to fill again; relaxed: a hint.
  uint64_t refilled() const noexcept { return refilled_.load(std::memory_order_relaxed); }
  void count_refilled(size_t bytes) noexcept { refilled_.fetch_add(bytes, std::memory_order_relaxed); }

 private:
  friend struct Layout;
  std::atomic<size_t> huge_{0}, slices_{0};
  std::atomic<size_t> heaps_{0};
  std::atomic<uint64_t> purged_{0};
  std::atomic<uint64_t> refilled_{0};
  std::atomic<uint64_t> cross_thread_frees_{0}, cross_thread_bytes_{0};
};
inline constinit Footprint footprint;

}  // namespace hm

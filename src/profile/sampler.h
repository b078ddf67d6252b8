// Which allocations a profile is made of: each byte that is allocated is as likely as any other to be the one that has its
// block sampled, `rate` bytes apart on average.  So of blocks of s bytes, 1 - exp(-s / rate) are sampled, and one that is
// stands for 1 / (1 - exp(-s / rate)).  The bytes of small blocks are those of their class.
//
// A thread counts the bytes of small blocks (core/counting.h); for each larger one a number is drawn.
#pragma once
#include "base/lock.h"
#include "threads/thread_heap.h"

namespace hm {

class Sampler {
 public:
  // Bytes from one sample to the next; 0: there never was a profile.  Relaxed: set before any allocation is counted.
  size_t rate() const noexcept { return rate_.load(std::memory_order_relaxed); }
  void start(size_t rate) noexcept;
  // Until the last block that was sampled is freed, whoever frees one has to come by: so allocations go on being counted.
  void stop() noexcept;
  // Called when that may be so.
  void rest() noexcept;
  void repair(uint32_t before) noexcept;                                                   // in the child of a fork
  bool is_sampling() const noexcept { return sampling_.load(std::memory_order_relaxed); }  // relaxed: a hint
  // For the heap's thread, which has counted a small block (to_sample) and is about to hand it out: whether to sample it.
  bool takes(SmallHeap& heap, size_t size) noexcept;
  bool chooses(size_t size) const noexcept { return is_sampling() && bytes_to_sample() < static_cast<int64_t>(size); }
  double weight(size_t size) const noexcept;  // how many such blocks a sampled one stands for

 private:
  int64_t bytes_to_sample() const noexcept;
  Lock lock_;  // the following, and whether allocations are counted
  std::atomic<bool> sampling_{false};
  std::atomic<size_t> rate_{0};
};
extern constinit Sampler sampler;

// Exported for tests: -ln(u) for u in (0, 1], and 1 - exp(-x) for x >= 0, to ten digits.
double minus_log(double u) noexcept;
double one_minus_exp(double x) noexcept;

}  // namespace hm

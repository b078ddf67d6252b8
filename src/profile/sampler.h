// Which allocations a profile is made of: each byte that is allocated is as likely as any other to be the one that has its
// block sampled, `rate` bytes apart on average.  So of blocks of s bytes, 1 - exp(-s / rate) are sampled, and one that is
// stands for 1 / (1 - exp(-s / rate)).  The bytes of small blocks are those of their class.
//
// A thread counts the small blocks of each class (core/counting.h); for each larger one a number is drawn.
//
// A tracer (profile/probes.h) gets samples at the usual rate, or those of the profile while one runs; so do guarded blocks
// (guard/guarded_blocks.h), which a profile has, too, while one runs.
#pragma once
#include "base/lock.h"
#include "profile/probes.h"
#include "threads/thread_heap.h"

namespace hm {

class Sampler {
 public:
  // Bytes from one sample to the next; 0: nothing was ever sampled.  Relaxed: set before any allocation is counted.
  size_t rate() const noexcept { return rate_.load(std::memory_order_relaxed); }
  // The same of the last profile; 0: there never was one.  Relaxed: set by a start that whoever asks knows of.
  size_t profile_rate() const noexcept { return profile_rate_.load(std::memory_order_relaxed); }
  void start(size_t rate) noexcept;
  void start_for_guard() noexcept;  // at the usual rate too, for good (guard/guarded_blocks.h)
  // Until the last block that is in the profile is freed, whoever frees one has to come by: so allocations go on being counted.
  void stop() noexcept;
  // Called when that may be so.
  void rest() noexcept;
  // For who holds no lock but the fallback heap's: a tracer may have come, or gone.  Most often two loads.
  void look_for_tracer() noexcept {
    if (HM_UNLIKELY(tracer_listens() != has_tracer())) follow_tracer();
  }
  void repair(uint32_t before) noexcept;  // in the child of a fork
  bool is_sampling() const noexcept { return for_whom() != 0; }
  bool has_profile() const noexcept { return (for_whom() & kProfile) != 0; }
  bool has_tracer() const noexcept { return (for_whom() & kTracer) != 0; }
  bool has_guard() const noexcept { return (for_whom() & kGuards) != 0; }
  // For the heap's thread, which has counted a small block and is about to hand it out: whether to sample it.
  bool takes(Countdown& countdown, size_t size) noexcept;
  bool chooses(size_t size) const noexcept { return is_sampling() && bytes_to_sample() < static_cast<int64_t>(size); }
  double weight(size_t size) const noexcept;  // how many such blocks a sampled one stands for

 private:
  enum Whom : uint8_t { kProfile = 1, kTracer = 2, kGuards = 4 };
  uint8_t for_whom() const noexcept { return for_whom_.load(std::memory_order_relaxed); }  // relaxed: a hint
  void follow_tracer() noexcept;
  void sample_for(int whom) noexcept;
  void stop_counting() noexcept;
  int64_t bytes_to_sample() const noexcept;
  Lock lock_;  // the following, and whether allocations are counted
  std::atomic<uint8_t> for_whom_{0};
  std::atomic<size_t> rate_{0}, profile_rate_{0};
};
extern constinit Sampler sampler;

// Exported for tests: -ln(u) for u in (0, 1], and 1 - exp(-x) for x >= 0, to ten digits.
double minus_log(double u) noexcept;
double one_minus_exp(double x) noexcept;

inline uint64_t rounded(double value) noexcept {  // without libm
  auto whole = static_cast<uint64_t>(value);
  return whole + (value - static_cast<double>(whole) >= 0.5 ? 1 : 0);
}

}  // namespace hm

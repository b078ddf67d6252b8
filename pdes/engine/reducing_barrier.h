// The barrier of a simulation's threads, once per window; it returns the smallest of their times and all their flags.
// Thread safety: only thread i calls arrive_and_reduce(i, ...), as often as every other thread.
//
// 1. One barrier returns the same on all threads.
// 2. No thread returns before all have arrived.
// 3. No thread pays for a system call to wake a thread that does not sleep.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "engine/waiting.h"
#include "pdes/event.h"
#include "pdes/options.h"

namespace pdes {

// A number that one thread at a time advances and others wait for.  Its lowest bit says that some thread sleeps.
class Epoch {
 public:
  static constexpr std::uint32_t kStep = 2;

  // For the thread that may advance it.
  std::uint32_t own() const noexcept { return word_.load(std::memory_order_relaxed) & ~kAsleep; }
  // Release: a thread that sees the advance sees what was written before.
  void advance() noexcept {
    if ((word_.exchange(own() + kStep, std::memory_order_release) & kAsleep) != 0) wake();
  }

  // For any thread.  Acquire: pairs with advance.
  bool is_past(std::uint32_t old) const noexcept { return (word_.load(std::memory_order_acquire) & ~kAsleep) != old; }
  // Returns when the number is past old.
  void wait(std::uint32_t old, SpinPolicy policy) noexcept;

 private:
  static constexpr std::uint32_t kAsleep = 1;
  void wake() noexcept;
  void sleep(std::uint32_t old) noexcept;
  std::atomic<std::uint32_t> word_{0};
};

class ReducingBarrier {
 public:
  struct Reduction {
    Time least;
    std::uint32_t flags;
  };

  explicit ReducingBarrier(unsigned threads, unsigned cpus = allowed_cpus());

  // Returns the smallest least and the flags combined by or.  Adds the seconds of waiting, and for whom, unless waits is null.
  Reduction arrive_and_reduce(unsigned thread, Reduction mine, Waits* waits = nullptr) noexcept;
  // How long to poll for another of these threads.
  SpinPolicy spin_policy() const noexcept { return crowded_ ? kCrowded : kRoomy; }
  bool is_crowded() const noexcept { return crowded_; }  // more threads than CPUs

 private:
  // Written by its thread, polled by all others.  It has words for two barriers: a fast thread may be at the next
  // barrier while a slow one still reads this one's; none is two ahead.
  struct alignas(128) Slot {
    Reduction words[2];
    Epoch epoch;
  };

  Reduction reduce_all(Slot& own, Reduction mine, Waits* waits) noexcept;
  Reduction reduce_last(unsigned thread, Reduction mine, Waits* waits) noexcept;

  std::vector<Slot> slots_;
  const bool crowded_;
  // For reduce_last.
  alignas(128) std::atomic<unsigned> arrived_{0};  // counted by each thread
  alignas(128) Reduction result_{};                // written by the last to arrive
  unsigned last_ = 0;                              // that thread
  Epoch meeting_;
};

}  // namespace pdes

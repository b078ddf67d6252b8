// Where the threads of a simulation meet once per window, and learn the smallest of their times and all their flags.
// Thread safety: thread i alone calls arrive_and_reduce(i, ...), as often as every other.
//
// 1. What one meeting returns is the same on all threads.
// 2. Nobody comes back before all have come.
// 3. Nobody pays a system call to wake a thread that does not sleep.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "engine/waiting.h"
#include "pdes/event.h"
#include "pdes/options.h"

namespace pdes {

// A number that one thread at a time advances and others wait for.  Its lowest bit says that somebody sleeps.
class Epoch {
 public:
  static constexpr std::uint32_t kStep = 2;

  // By whoever may advance it.
  std::uint32_t own() const noexcept { return word_.load(std::memory_order_relaxed) & ~kAsleep; }
  // Release: who sees the advance sees what was written before.
  void advance() noexcept {
    if ((word_.exchange(own() + kStep, std::memory_order_release) & kAsleep) != 0) wake();
  }

  // By anybody.  Acquire: the other half of advance.
  bool is_past(std::uint32_t old) const noexcept { return (word_.load(std::memory_order_acquire) & ~kAsleep) != old; }
  // Returns when it is past old.
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

  // The smallest least and the or of all flags.  Adds to blocked_s, if not null, the seconds spent waiting.
  Reduction arrive_and_reduce(unsigned thread, Reduction mine, double* blocked_s = nullptr) noexcept;
  // How long to poll for another of these threads.
  SpinPolicy spin_policy() const noexcept { return crowded_ ? kCrowded : kRoomy; }

 private:
  // Written by its thread, polled by all others.  The words of two meetings: a fast thread may be at the next one while
  // a slow one still reads this one's; nobody is two ahead.
  struct alignas(128) Slot {
    Reduction words[2];
    Epoch epoch;
  };

  Reduction reduce_all(Slot& own, Reduction mine, double* blocked_s) noexcept;
  Reduction reduce_last(Slot& own, Reduction mine, double* blocked_s) noexcept;

  std::vector<Slot> slots_;
  const bool crowded_;  // more threads than CPUs
  // Of reduce_last.
  alignas(128) std::atomic<unsigned> arrived_{0};  // by each thread
  alignas(128) Reduction result_{};                // by the last to arrive
  Epoch meeting_;
};

}  // namespace pdes

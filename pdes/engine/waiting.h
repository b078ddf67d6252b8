// How threads wait for each other: they poll while the others probably are about to finish, yield, then sleep.
#pragma once

#include <sched.h>

#include <chrono>
#include <cstddef>

#include "pdes/waits.h"

namespace pdes {

struct SpinPolicy {
  unsigned polls, yields;
  bool has_home;  // whether it should return to its home CPU after sleeping
};
// With a CPU for each thread the others come soon: 1000 pauses are 10 to 60 us.  After that the machine is busy with
// something else, perhaps for milliseconds.
inline constexpr SpinPolicy kRoomy{1000, 0, true};
// Otherwise the thread that we wait for may need this CPU, so yield.  Twenty yields are some 10 us, less than a sleeper
// takes to wake on a virtual machine.
inline constexpr SpinPolicy kCrowded{5, 20, false};

inline void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // about as long as x86's pause; on most cores yield does nothing
#endif
}

// Returns whether done() became true within the policy's limits; if not, it is time to sleep.
template <class Done>
bool spin_until(SpinPolicy policy, Done&& done) {
  for (unsigned i = 0; i < policy.polls; ++i) {
    if (done()) return true;
    pause();
  }
  for (unsigned i = 0; i < policy.yields; ++i) {
    if (done()) return true;
    sched_yield();
  }
  return done();
}

inline constexpr std::size_t kNobodyInParticular = ~std::size_t{0};

// Adds the seconds of its lifetime to the waits, if there are some.
class Stopwatch {
 public:
  explicit Stopwatch(Waits* waits, std::size_t on = kNobodyInParticular) noexcept : waits_(waits), on_(on) {
    if (waits_ != nullptr) start_ = std::chrono::steady_clock::now();
  }
  ~Stopwatch() {
    if (waits_ == nullptr) return;
    waits_->add(std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(), on_);
  }
  // Who it turned out to be.
  void on(std::size_t thread) noexcept { on_ = thread; }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  Waits* waits_;
  std::size_t on_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace pdes

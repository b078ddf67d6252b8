// How threads wait for each other: they poll for as long as the others probably need, let others run, then sleep.
#pragma once

#include <sched.h>

#include <chrono>

namespace pdes {

struct SpinPolicy {
  unsigned polls, yields;
  bool has_home;  // a CPU of its own to go back to after sleeping
};
// With a CPU for each thread the others come soon: 1000 pauses are 10 to 60 us.  Then the machine has something else
// to do, perhaps for milliseconds.
inline constexpr SpinPolicy kRoomy{1000, 0, true};
// Without, whoever we wait for may need this CPU: let it run.  Twenty yields are some 10 us, less than a sleeper takes
// to wake on a virtual machine.
inline constexpr SpinPolicy kCrowded{5, 20, false};

inline void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // about as long as the pause of x86; yield does nothing on most cores
#endif
}

// Whether done() came true while the policy lasts; if not it is time to sleep.
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

// Adds the seconds it lives to a sum, if there is one.
class Stopwatch {
 public:
  explicit Stopwatch(double* seconds) noexcept : seconds_(seconds) {
    if (seconds_ != nullptr) start_ = std::chrono::steady_clock::now();
  }
  ~Stopwatch() {
    if (seconds_ != nullptr) *seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double* seconds_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace pdes

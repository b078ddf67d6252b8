// How many bytes of freed memory are worth keeping: what was asked for again after it had gone back to the system, less
// what was kept in vain.  A program that grows by doubling seldom asks again, and what it leaves behind would be as much
// as it holds; a program that replaces its buffers asks all the time, so the second time in a row counts twice, the third
// three times.  A program that pauses for longer than the decay time has asked for nothing again: all is forgotten, so
// that what it frees before it sleeps goes back at once.  Under its user's lock.
#pragma once
#include <algorithm>
#include <array>

#include "base/sizes.h"

namespace hm {

inline constexpr size_t kMaxKept = 64 * kMiB;  // of huge blocks, or what makes all of them 3/2 of their peak

class ExtentRetention {
 public:
  size_t allowance() const noexcept { return allowance_; }
  // At each request and each free, before anything else.
  void observe(uint64_t now_ms, uint64_t decay_ms) noexcept {
    if (now_ms - observed_ms_ > decay_ms) {
      allowance_ = 0;
      forget();
    }
    observed_ms_ = now_ms;
  }
  void on_unmap(size_t bytes) noexcept { returned_[returns_++ % returned_.size()] = bytes; }
  // Would some of what went back have done?
  void on_map(size_t bytes, size_t most) noexcept {
    auto found = std::find_if(returned_.begin(), returned_.end(), [=](size_t had) { return had >= bytes; });
    if (found == returned_.end()) return;
    *found -= bytes;
    streak_ = std::min(streak_ + 1, kLongestStreak);
    allowance_ = std::min(allowance_ + streak_ * bytes, most);
  }
  // After every round of decay: what went back before it is forgotten.
  void on_expire(size_t bytes) noexcept {
    allowance_ -= std::min(allowance_, bytes);
    forget();
  }

 private:
  void forget() noexcept {
    returned_.fill(0);
    streak_ = 0;
  }
  static constexpr size_t kLongestStreak = 16;
  size_t allowance_ = 0;
  std::array<size_t, 8> returned_{};  // the last that went back
  size_t returns_ = 0, streak_ = 0;
  uint64_t observed_ms_ = 0;
};

}  // namespace hm

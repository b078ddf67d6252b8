// When a program that has paused gives its holes back, and for how long its first call may be busy with that.  Numbers in,
// numbers out; guarded by its user's lock.
#pragma once
#include <algorithm>

#include "base/sizes.h"

namespace hm {

class PausePasses {
 public:
  static constexpr uint64_t kWorkPerMs = 64;  // of the pause; a unit is about a microsecond
  // A longer pause, in milliseconds, counts as this one: somebody waits for the first call after it.
  static constexpr uint64_t kLongestPause = 1000;
  static constexpr uint64_t kRest = 64;  // times the duration of a pass that was in vain

  // How much work the pass may do, or 0: there is to be none.  refilled: a count of bytes.
  size_t work_after(uint64_t pause_ms, uint64_t now_ms, uint64_t refilled) noexcept {
    if (gain_ > 0 && refilled - refilled_ >= gain_ / 2) rest();  // it went back, and was needed again
    return now_ms < rests_until_ms_ ? 0 : std::min(pause_ms, kLongestPause) * kWorkPerMs;
  }
  // A pass has looked at so many bytes and given so many back.
  void on_pass(size_t looked_at, size_t given_back, uint64_t from_ms, uint64_t to_ms, uint64_t refilled) noexcept {
    gain_ = given_back;
    refilled_ = refilled;
    ended_ms_ = to_ms;
    took_ms_ = to_ms - from_ms;
    if (given_back < looked_at / 16) rest();
  }

 private:
  void rest() noexcept {
    rests_until_ms_ = ended_ms_ + kRest * took_ms_;
    gain_ = 0;
  }
  size_t gain_ = 0;
  uint64_t refilled_ = 0;
  uint64_t took_ms_ = 0, ended_ms_ = 0, rests_until_ms_ = 0;
};

}  // namespace hm

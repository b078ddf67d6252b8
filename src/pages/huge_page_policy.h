// When chunks get huge pages.  Huge pages save page faults where the program touches all of its memory and cost memory
// where it does not.  So the next chunks get what the newest chunk with small pages suggests, by how much was touched of
// what was handed out of it; each region has such a chunk.  Huge pages are fast only if the system has them ready: if it
// must make room first, or a host must find memory behind them, each takes milliseconds, and the next chunks get small
// pages.
//
// Under the slice pool's lock.
#pragma once
#include <algorithm>

#include "base/sizes.h"

namespace hm {

class HugePagePolicy {
 public:
  static constexpr uint64_t kSlow = 1'000'000;  // ns of a first touch; touching it all by small pages takes a third
  static constexpr size_t kFirstPause = 4, kLongestPause = 64;  // chunks with small pages after a slow one
  // All that was handed out, except for the superblocks that were opened last.
  static constexpr bool is_dense(size_t resident, size_t bytes) { return resident >= bytes / 8 * 7; }

  // Called for each new chunk; true while it must have small pages.
  bool pausing() noexcept {
    if (pause_left_ == 0) return false;
    --pause_left_;
    return true;
  }
  // The first touch of a chunk with huge pages took `ns`.  True if that was too long.
  bool took(uint64_t ns) noexcept {
    bool slow = ns > kSlow;
    pause_ = slow ? std::clamp(2 * pause_, kFirstPause, kLongestPause) : pause_ / 2;
    pause_left_ = slow ? pause_ : 0;
    return slow;
  }

 private:
  size_t pause_ = 0, pause_left_ = 0;
};

}  // namespace hm

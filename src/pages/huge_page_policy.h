// When chunks get huge pages.  They save page faults where the program touches all of its memory, and cost memory where
// it does not: what it has touched of the newest chunk with small pages, and each region has one, decides for the next
// ones.  And they are fast only where the system has them at hand: where it must make room first, or a host find memory
// behind them, each takes milliseconds; then the next chunks have small pages.
//
// Under the slice pool's lock.
#pragma once
#include <algorithm>

#include "base/sizes.h"

namespace hm {

class HugePagePolicy {
 public:
  static constexpr uint64_t kSlow = 1'000'000;  // ns of a first touch; small pages for all of it take a third
  static constexpr size_t kFirstPause = 4, kLongestPause = 64;  // chunks with small pages after a slow one
  // All that was handed out, but for the superblocks that were opened last.
  static constexpr bool is_dense(size_t resident, size_t bytes) { return resident >= bytes / 8 * 7; }

  // One chunk more: whether not yet.
  bool pausing() noexcept { return pause_left_ > 0 && pause_left_-- > 0; }
  // The first touch of a chunk that has them took so long.  True: too long.
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

// Which chunks get huge pages.  They save page faults where the program touches all of its memory, and cost memory
// where it does not: so one chunk in a while has small pages, and what the program has touched of the newest such chunk
// decides for the next ones.  And they are fast only where the system has them at hand: where it must make room first,
// or a host find memory behind them, each takes milliseconds; then the next chunks have small pages.
//
// Under the slice pool's lock.
#pragma once
#include <algorithm>

#include "base/sizes.h"

namespace hm {

class HugePages {
 public:
  static constexpr size_t kSampleEvery = 16;            // chunks
  static constexpr uint64_t kSlow = 1'000'000;          // ns of the first touch; small pages for all of it take a third
  static constexpr size_t kFirstPause = 4, kLongestPause = 64;  // chunks with small pages after a slow one
  // Of the sample, less what the last superblocks opened in it have not used yet.
  static constexpr bool is_dense(size_t resident, size_t bytes) { return resident >= bytes / 8 * 7; }

  // For the next chunk; sample_is_dense() is called only if it matters.
  template <class Dense>
  bool wanted(Dense sample_is_dense) noexcept {
    if (pause_left_ > 0) return --pause_left_, false;
    if (++since_sample_ >= kSampleEvery) return since_sample_ = 0, false;
    return sample_is_dense();
  }
  // The first touch of a chunk that has them took so long.
  void took(uint64_t ns) noexcept {
    bool slow = ns > kSlow;
    pause_ = slow ? std::clamp(2 * pause_, kFirstPause, kLongestPause) : pause_ / 2;
    pause_left_ = slow ? pause_ : 0;
  }

 private:
  size_t since_sample_ = 0;
  size_t pause_ = 0, pause_left_ = 0;
};

}  // namespace hm

// Budget for caching freed extents.  It grows by each allocation that an extent we had unmapped could have served, and
// shrinks by what is cached in vain.  A program that grows by doubling seldom asks again, and caching what it leaves
// behind would double its footprint.  A program that replaces its buffers asks all the time, so the second such
// allocation in a row counts twice, the third three times.  After a pause longer than the decay time all is forgotten,
// so that what the program frees before it sleeps goes back at once.  Guarded by its user's lock.
#pragma once
#include <algorithm>
#include <array>

#include "base/sizes.h"

namespace hm {

inline constexpr size_t kMaxKept = 64 * kMiB;  // huge blocks; or what makes all of them 3/2 of their peak, if that is more

class ExtentRetention {
 public:
  size_t allowance() const noexcept { return allowance_; }
  // Called first at each request and each free.
  void observe(uint64_t now_ms, uint64_t decay_ms) noexcept {
    if (now_ms - observed_ms_ > decay_ms) {
      allowance_ = 0;
      forget();
    }
    observed_ms_ = now_ms;
  }
  void on_unmap(size_t bytes) noexcept { returned_[returns_++ % returned_.size()] = bytes; }
  // Whether an extent that was unmapped could have served this request.
  void on_map(size_t bytes, size_t most) noexcept {
    auto found = std::find_if(returned_.begin(), returned_.end(), [=](size_t had) { return had >= bytes; });
    if (found == returned_.end()) return;
    *found -= bytes;
    streak_ = std::min(streak_ + 1, kLongestStreak);
    allowance_ = std::min(allowance_ + streak_ * bytes, most);
  }
  // After every round of decay: forgets what was unmapped before it.
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
  std::array<size_t, 8> returned_{};  // sizes of the last extents unmapped
  size_t returns_ = 0, streak_ = 0;
  uint64_t observed_ms_ = 0;
};

}  // namespace hm

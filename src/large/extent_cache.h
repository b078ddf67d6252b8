// Extents without a block, and what was written to behind smaller blocks (slack): the memory above 1 MB that waits for its
// next use.  Under the lock of huge.cc.
#pragma once
#include "large/extent.h"

namespace hm {

class ExtentCache {
 public:
  // The smallest that is long enough, without what is not wanted of it; or_longest: if there is none, the longest.
  Extent* take(size_t bytes, bool or_longest) noexcept;
  Extent* take_oldest() noexcept;
  ExtentList take_until(uint64_t before_ms) noexcept;  // those that have been kept since then
  bool grow(Extent& extent, size_t bytes) noexcept;    // into the one behind it
  void keep(Extent& extent) noexcept;

  void note_slack(Extent& extent, size_t slack) noexcept;
  void forget_slack(Extent& extent) noexcept;
  Extent* slack_until(uint64_t before_ms) const noexcept;  // one of them

  // huge_repair: empties the lists, then puts in what the descriptors say.
  void forget_all() noexcept;
  void put_back(Extent& extent) noexcept;
  void put_slack_back(Extent& extent) noexcept;

  size_t bytes() const noexcept { return bytes_; }  // of both
  bool is_valid() const noexcept;                   // E2, E4, counts and links

 private:
  Extent* cut(Extent& extent, size_t bytes) noexcept;
  void remove(Extent& extent) noexcept;
  void insert(Extent* before, Extent& extent) noexcept;
  static void absorb(Extent& extent, Extent& next) noexcept;
  void join_with_next(Extent& extent) noexcept;

  ExtentList kept_;  // by address
  ExtentList slack_;
  size_t bytes_ = 0;
};

}  // namespace hm

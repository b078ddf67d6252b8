// Extents without a block, and dirty memory behind smaller blocks (slack): memory above 1 MB that waits for reuse.
// Guarded by the lock of huge.cc.
#pragma once
#include "large/extent.h"

namespace hm {

class ExtentCache {
 public:
  // The smallest extent that is long enough, cut to size; with or_longest, the longest one if none is long enough.
  Extent* take(size_t bytes, bool or_longest) noexcept;
  Extent* take_oldest() noexcept;
  // The first that lies behind that address and is kept since that time or longer, or null.
  Extent* take_due(uint64_t before_ms, const char* behind) noexcept;
  bool grow(Extent& extent, size_t bytes) noexcept;  // into the extent behind it
  void keep(Extent& extent) noexcept;

  void note_slack(Extent& extent, size_t slack) noexcept;
  void forget_slack(Extent& extent) noexcept;
  Extent* slack_until(uint64_t before_ms) const noexcept;  // one of those due

  // For huge_repair: empties the lists; the other two put in what the descriptors say.
  void forget_all() noexcept;
  void put_back(Extent& extent) noexcept;
  void put_slack_back(Extent& extent) noexcept;

  size_t bytes() const noexcept { return bytes_; }  // kept and slack
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

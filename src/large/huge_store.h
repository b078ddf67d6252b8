// The state of huge.cc: kept extents, counts, and the calls that map, stretch, move and unmap extents.
#pragma once
#include <algorithm>

#include "base/lock.h"
#include "large/extent_cache.h"
#include "large/extent_retention.h"
#include "large/extent_table.h"
#include "pages/memory_limit.h"

namespace hm {

struct HugeStore {
  Lock lock;
  ExtentCache cache;
  ExtentRetention retention;
  size_t blocks = 0, mapped = 0, active = 0, max_active = 0;
  size_t promised = 0;                // to blocks that are not active yet, or are not as long yet
  std::atomic<uint64_t> mappings{0};  // so far; names each mapping.  Relaxed: no two get the same

  size_t room() const noexcept { return std::max(kMaxKept, max_active + max_active / 2 - active); }
  // More than what is counted now: a kept extent counts whole, however little of it its block took.
  bool may_keep(size_t more) const noexcept {
    return cache.bytes() + more <= std::min(retention.allowance(), room()) && !is_above_soft_limit(more);
  }
  void activate(size_t added) noexcept {
    active += added;
    max_active = std::max(max_active, active);
  }
  // Unmaps the oldest extents until `more` bytes fit, if they can fit at all; not under the lock.
  void make_room(size_t more) noexcept;
  // For an extent that the caller holds.  `mapped` is the sum of what all descriptors own.
  void set_bytes(Extent& extent, size_t bytes) noexcept {
    mapped += bytes - extent.bytes();
    extent.set_bytes(bytes);
  }
  // False if the slack is too much to be cached.
  bool note_slack(Extent& extent) noexcept {
    if (extent.dirty <= extent.taken()) return true;
    size_t slack = extent.dirty - extent.taken();
    if (!may_keep(slack)) return false;
    cache.note_slack(extent, slack);
    return true;
  }
  void publish() noexcept { footprint.set_huge(active + promised + cache.bytes()); }
  // For a block that is about to take so many bytes more; false: the limit does not allow it.  0 if there is no limit.
  static size_t to_promise(size_t bytes) noexcept { return options.limit == 0 ? 0 : align_up(bytes, os::page_size()); }
  bool promise(size_t bytes) noexcept {
    if (bytes == 0) return true;
    LockGuard guard(lock);
    if (!limit_admits(bytes, false)) return false;
    promised += bytes;
    publish();
    return true;
  }
  void break_promise(size_t bytes) noexcept {
    if (bytes == 0) return;
    LockGuard guard(lock);
    fulfil(bytes);
    publish();
  }
  void fulfil(size_t bytes) noexcept { promised -= std::min(promised, bytes); }  // a child may have forgotten them
};
extern HugeStore huge_store;

// For extents that this thread holds, without the lock.
Extent* map_extent(size_t bytes, size_t alignment) noexcept;  // null if there is no memory
bool resize_extent(Extent& extent, size_t bytes) noexcept;    // in place, or by moving its pages; false: unchanged
size_t unmap_extent(Extent& extent) noexcept;                 // returns bytes; an extent that the system refuses is kept

}  // namespace hm

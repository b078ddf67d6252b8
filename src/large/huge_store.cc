#include "large/huge_store.h"

#include "pages/options.h"

namespace hm {

constinit HugeStore huge_store;

namespace {

uint64_t name_mapping() noexcept { return huge_store.mappings.fetch_add(1, std::memory_order_relaxed); }

void set_bytes(Extent& extent, size_t bytes) noexcept {
  LockGuard guard(huge_store.lock);
  huge_store.set_bytes(extent, bytes);
}

bool move_extent(Extent& extent, size_t bytes) noexcept {
  size_t before = extent.bytes();
  char* target = static_cast<char*>(os::map(bytes, kChunk));
  if (target == nullptr) return false;
  bool known;
  {
    LockGuard guard(huge_store.lock);
    known = extent_table.reserve(target);
  }
  if (!known) {
    os::unmap(target, bytes);
    return false;
  }
  extent_table.leave(extent);
  set_bytes(extent, 0);  // E5: the next who maps memory may get this
  bool moved = os::move(extent.start(), before, target, bytes);
  // Otherwise target may already be unmapped and belong to somebody else: we give up its address space.
  if (moved) {
    extent.set_start(target);
    extent.mapping = name_mapping();
  }
  set_bytes(extent, moved ? bytes : before);
  extent_table.enter(extent);
  return moved;
}

}  // namespace

Extent* map_extent(size_t bytes, size_t alignment) noexcept {
  auto* start = static_cast<char*>(os::map(bytes, std::max(alignment, kChunk)));
  if (start == nullptr) return nullptr;
  if (bytes / 4 > options.huge_pages_after) os::prefer_huge_pages(start, bytes);
  {
    LockGuard guard(huge_store.lock);
    if (Extent* extent = extent_table.create(start)) {
      extent->mapping = name_mapping();
      huge_store.set_bytes(*extent, bytes);
      return extent;
    }
  }
  os::unmap(start, bytes);
  return nullptr;
}

bool resize_extent(Extent& extent, size_t bytes) noexcept {
  size_t before = extent.bytes();
  if (bytes < before) set_bytes(extent, bytes);  // E5
  bool in_place = os::resize(extent.start(), before, bytes);
  set_bytes(extent, in_place ? bytes : before);
  if (!in_place && !move_extent(extent, bytes)) return false;
  extent.dirty = std::min(extent.dirty, bytes);
  return true;
}

// If the system refuses to unmap it (vm.max_map_count), at least its pages are given back.
size_t unmap_extent(Extent& extent) noexcept {
  size_t bytes = extent.bytes();
  extent_table.leave(extent);
  set_bytes(extent, 0);  // E5
  bool gone = os::unmap(extent.start(), bytes);
  if (!gone) os::purge(extent.start(), bytes);
  LockGuard guard(huge_store.lock);
  if (gone) {
    extent_table.release(extent);
  } else {
    huge_store.set_bytes(extent, bytes);
    extent_table.enter(extent);
    huge_store.cache.keep(extent);
  }
  huge_store.publish();
  return gone ? bytes : 0;
}

// One at a time: the child of a fork loses what is held.
void HugeStore::make_room(size_t more) noexcept {
  for (;;) {
    Extent* oldest = nullptr;
    {
      LockGuard guard(lock);
      if (more <= retention.allowance() && !may_keep(more)) oldest = cache.take_oldest();
      if (oldest != nullptr) retention.on_unmap(oldest->bytes());
    }
    if (oldest == nullptr) return;
    size_t gone = unmap_extent(*oldest);
    footprint.count_purged(gone);
    if (gone == 0) return;  // the system refuses: it would be taken again
  }
}

}  // namespace hm

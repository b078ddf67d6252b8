#include "large/huge.h"

#include <algorithm>

#include "base/clock.h"
#include "base/size_classes.h"
#include "large/huge_store.h"
#include "pages/options.h"

namespace hm {
namespace {

HugeStore& store = huge_store;

// A kept extent, or null.  stretch: if none is long enough, lengthens one of them.
Extent* reuse_extent(size_t bytes, bool stretch) noexcept {
  Extent* extent;
  uint64_t now = os::now_ms();
  {
    LockGuard guard(store.lock);
    store.retention.observe(now, options.decay_ms);
    extent = store.cache.take(bytes, stretch);
    if (!stretch) return extent;
    if (extent == nullptr || extent->bytes() < bytes) store.retention.on_map(bytes, store.max_active + kMaxKept);
  }
  if (extent == nullptr || extent->bytes() >= bytes || resize_extent(*extent, bytes)) return extent;
  LockGuard guard(store.lock);
  store.cache.keep(*extent);
  return nullptr;
}

// ---- blocks

// Accounts for a block that was allocated here (before == 0) or took `before` bytes; this thread holds the extent, and was
// promised so many bytes.
void account(Extent& extent, size_t before, size_t promised) noexcept {
  bool fits;
  ExtentList dropped;
  {
    LockGuard guard(store.lock);
    extent.set_state(ExtentState::kLive);
    store.blocks += before == 0;
    store.activate(extent.taken() - before);
    store.fulfil(promised);
    fits = store.note_slack(extent);
    dropped = store.make_room(0);
    store.publish();
  }
  if (!fits) extent.purge_behind();
  unmap_all(dropped);
}

// One extent at a time, because its pages are given back with the lock held.
size_t purge_slack(uint64_t before_ms) noexcept {
  for (size_t bytes = 0;;) {
    LockGuard guard(store.lock);
    Extent* due = store.cache.slack_until(before_ms);
    if (due == nullptr) return bytes;
    bytes += due->slack;
    store.retention.on_expire(due->slack);
    store.cache.forget_slack(*due);
    due->purge_behind();
    store.publish();
  }
}

}  // namespace

FreshBlock allocate_huge(size_t size, size_t alignment, bool map) noexcept {
  size_t bytes = align_up(size, kChunk), promised = map ? store.to_promise(size) : 0;
  if (!store.promise(promised)) return {nullptr, 0};
  Extent* extent = alignment <= kChunk ? reuse_extent(bytes, map) : nullptr;
  if (extent == nullptr && map) extent = map_extent(bytes, alignment);
  if (extent == nullptr && map) extent = map_extent(align_up(size, os::page_size()), alignment);
  if (extent == nullptr) {
    store.break_promise(promised);
    return {nullptr, 0};
  }
  extent->size = size;
  extent_table.enter(*extent);
  FreshBlock result{extent->start(), std::min(extent->dirty, size)};
  account(*extent, 0, promised);
  return result;
}

Extent* huge_extent(const void* block) noexcept {
  Extent* extent = extent_table.find(address_of(block));
  return extent != nullptr && extent->start() == block ? extent : nullptr;
}

size_t huge_size(const Extent& extent) noexcept { return extent.size; }
size_t huge_capacity(const Extent& extent) noexcept { return extent.taken(); }
bool huge_is_live(const Extent& extent) noexcept { return extent.is_live(); }

bool free_huge(Extent& extent) noexcept {
  ExtentList dropped;
  uint64_t now = os::now_ms();
  {
    LockGuard guard(store.lock);
    if (!extent.is_live()) return false;
    store.retention.observe(now, options.decay_ms);
    extent.set_state(ExtentState::kHeld);
    store.cache.forget_slack(extent);
    extent.dirty = std::max(extent.dirty, extent.taken());
    --store.blocks;
    store.active -= extent.taken();
    dropped = store.make_room(extent.bytes());
    if (store.may_keep(extent.bytes())) {
      store.cache.keep(extent);
    } else {
      store.retention.on_unmap(extent.bytes());
      dropped.push(extent);
    }
    store.publish();
  }
  unmap_all(dropped);
  return true;
}

void* resize_huge(Extent& extent, size_t size) noexcept {
  if (size > kMaxRequest / 2 || size <= kLargeMax) return nullptr;
  size_t before = extent.taken(), after = align_up(size, os::page_size()), bytes = align_up(size, kChunk);
  size_t promised = after > before ? store.to_promise(after - before) : 0;
  if (!store.promise(promised)) return nullptr;
  bool done;
  {
    LockGuard guard(store.lock);
    store.cache.forget_slack(extent);  // or others would purge what is going to be the block's
    extent.dirty = std::max(extent.dirty, before);
    done = extent.fits(size) || store.cache.grow(extent, bytes);
    if (done) extent.size = size;  // under the lock: others may unmap what is behind the block
    else extent.set_state(ExtentState::kHeld);
  }
  if (!done) {
    done = resize_extent(extent, bytes) || resize_extent(extent, after);
    if (done) extent.size = size;
  }
  account(extent, before, promised);
  return done ? extent.start() : nullptr;
}

size_t purge_huge_blocks(bool all) noexcept {
  uint64_t before_ms = all ? UINT64_MAX : os::now_ms() - options.decay_ms / 2;
  size_t bytes = purge_slack(before_ms);
  ExtentList due;
  {
    LockGuard guard(store.lock);
    size_t kept = store.cache.bytes();
    due = store.cache.take_until(before_ms);
    store.retention.on_expire(kept - store.cache.bytes());
    store.publish();
  }
  return bytes + unmap_all(due);
}

void unmap_behind_huge_blocks() noexcept {
  LockGuard guard(store.lock);
  extent_table.for_each([](Extent& extent) {
    if (!extent.is_live()) return;  // its holder, who may be resizing it, has no lock
    size_t bytes = extent.bytes(), taken = extent.taken();
    if (taken == bytes) return;
    store.cache.forget_slack(extent);
    store.set_bytes(extent, taken);  // E5
    if (os::unmap(extent.start() + taken, bytes - taken)) {
      extent.dirty = std::min(extent.dirty, taken);
    } else {
      store.set_bytes(extent, bytes);
      extent.purge_behind();
    }
  });
  store.publish();
}

// ExtentRetention affects only speed, so whatever is in it will do.
void huge_repair() noexcept {
  extent_table.repair();
  store.cache.forget_all();
  store.blocks = store.mapped = store.active = store.promised = 0;
  extent_table.for_each([](Extent& extent) {
    extent.dirty = std::min(extent.dirty, extent.bytes());
    store.mapped += extent.bytes();
    if (extent.state() == ExtentState::kKept) store.cache.put_back(extent);
    if (!extent.is_live()) return;
    ++store.blocks;
    store.activate(extent.taken());
    if (extent.slack > 0) store.cache.put_slack_back(extent);
  });
  store.publish();
}

// Those whom the other threads of the parent promised bytes are not in the child, whoever had the lock.
void huge_forget_promises() noexcept {
  store.promised = 0;
  store.publish();
}

Lock& huge_lock() noexcept { return store.lock; }

bool huge_is_valid() noexcept {
  LockGuard guard(store.lock);
  return store.cache.is_valid() && store.active <= store.max_active && store.active + store.cache.bytes() <= store.mapped;
}

HugeGauges huge_gauges() noexcept {
  LockGuard guard(store.lock);
  return {store.blocks, store.mapped, store.cache.bytes(), store.active, store.max_active, extent_table.bytes()};
}

}  // namespace hm

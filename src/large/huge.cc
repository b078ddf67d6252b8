#include "large/huge.h"

#include <algorithm>

#include "base/clock.h"
#include "base/size_classes.h"
#include "large/huge_store.h"
#include "pages/options.h"

namespace hm {
namespace {

HugeStore& store = huge_store;

// The extent that this thread holds while it resizes its block, which stays counted.
constinit thread_local const Extent* resized = nullptr;

// A kept extent, or null.  stretch: if none is long enough, lengthens one of them.
Extent* reuse_extent(size_t bytes, bool stretch) noexcept {
  Extent* extent;
  {
    LockGuard guard(store.lock);
    store.retention.observe(os::now_ms(), options.decay_ms);  // read under the lock: time must not go back
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

// Under the lock: the extent has a block of this size now, where none was (before == 0) or one that took `before` bytes; this
// thread held the extent, and was promised so many bytes.  What is behind the block is purged under the lock too, because
// another thread may unmap it as soon as the block is live, and the system map there what is not ours.  False: too much is kept.
bool settle(Extent& extent, size_t size, size_t before, size_t promised) noexcept {
  extent.size = size;
  extent.set_state(ExtentState::kLive);
  store.blocks += before == 0;
  store.activate(extent.taken() - before);
  store.fulfil(promised);
  if (!store.note_slack(extent)) {
    size_t dirty = extent.dirty;
    extent.purge_behind();
    footprint.count_purged(dirty - extent.dirty);
  }
  store.publish();
  return store.may_keep(0);
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
  bool roomy;
  {
    LockGuard guard(store.lock);
    roomy = settle(*extent, size, 0, promised);
  }
  if (!roomy) store.make_room(0);
  return result;
}

Extent* huge_extent(const void* block) noexcept {
  Extent* extent = extent_table.find(address_of(block));
  return extent != nullptr && extent->start() == block ? extent : nullptr;
}

size_t huge_size(const Extent& extent) noexcept { return extent.size; }
size_t huge_capacity(const Extent& extent) noexcept { return extent.taken(); }
bool huge_is_live(const Extent& extent) noexcept { return extent.is_live(); }

namespace {

// For an extent that this thread holds; under the lock.
bool keep_if_allowed(Extent& extent) noexcept {
  if (!store.may_keep(extent.bytes())) return false;
  store.cache.keep(extent);
  store.publish();
  return true;
}

}  // namespace

bool free_huge(Extent& extent) noexcept {
  {
    LockGuard guard(store.lock);
    if (!extent.is_live()) return false;
    store.retention.observe(os::now_ms(), options.decay_ms);
    extent.set_state(ExtentState::kHeld);
    store.cache.forget_slack(extent);
    extent.dirty = std::max(extent.dirty, extent.taken());
    --store.blocks;
    store.active -= extent.taken();
    store.publish();
    if (keep_if_allowed(extent)) return true;
  }
  store.make_room(extent.bytes());
  {
    LockGuard guard(store.lock);
    if (keep_if_allowed(extent)) return true;
    store.retention.on_unmap(extent.bytes());
  }
  footprint.count_purged(unmap_extent(extent));
  return true;
}

void* resize_huge(Extent& extent, size_t size) noexcept {
  if (size > kMaxRequest / 2 || size <= kLargeMax) return nullptr;
  size_t before = extent.taken(), after = align_up(size, os::page_size()), bytes = align_up(size, kChunk);
  size_t promised = after > before ? store.to_promise(after - before) : 0;
  if (!store.promise(promised)) return nullptr;
  bool done, roomy = true;
  {
    LockGuard guard(store.lock);
    store.cache.forget_slack(extent);  // or others would purge what is going to be the block's
    extent.dirty = std::max(extent.dirty, before);
    done = extent.fits(size) || store.cache.grow(extent, bytes);
    if (done) roomy = settle(extent, size, before, promised);
    else extent.set_state(ExtentState::kHeld), resized = &extent;
  }
  if (!done) {
    done = resize_extent(extent, bytes) || resize_extent(extent, after);
    LockGuard guard(store.lock);
    resized = nullptr;
    roomy = settle(extent, done ? size : extent.size, before, promised);
  }
  if (!roomy) store.make_room(0);
  return done ? extent.start() : nullptr;
}

size_t purge_huge_blocks(bool all) noexcept {
  uint64_t now = os::now_ms(), before_ms = all ? now : now - options.decay_ms / 2;
  size_t bytes = purge_slack(before_ms);
  const char* behind = nullptr;
  for (;;) {  // one at a time: the child of a fork loses what is held
    Extent* due;
    {
      LockGuard guard(store.lock);
      due = store.cache.take_due(before_ms, behind);
      store.retention.on_expire(due != nullptr ? due->bytes() : 0);
      if (due == nullptr) return bytes;
    }
    size_t gone = unmap_extent(*due);
    bytes += gone;
    if (gone == 0) behind = due->start();  // it is kept again, and not to be tried again
  }
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
    store.mapped += extent.bytes();
    if (extent.is_live() || &extent == resized) {
      ++store.blocks;
      store.activate(extent.taken());
    }
    if (extent.state() == ExtentState::kHeld) return;  // perhaps by this thread, whose signal handler has forked: it goes on
    extent.dirty = std::min(extent.dirty, extent.bytes());
    if (extent.state() == ExtentState::kKept) store.cache.put_back(extent);
    if (extent.is_live() && extent.slack > 0) store.cache.put_slack_back(extent);
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

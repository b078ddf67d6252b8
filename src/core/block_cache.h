// A block cache: a stack of pointers to the blocks of one class that this thread freed most recently, whoever owns
// them.  A cached block still looks TAKEN to everybody else, so any thread may cache any block.  One thread writes a
// cache; statistics may read `top` and `bottom` from other threads, and one that has claimed the heap takes entries from
// the bottom (threads/claims.h).
//
// The slot below the first entry holds null, so an empty cache pops null and needs no counter.
#pragma once
#include <algorithm>
#include <atomic>

#include "base/codegen.h"
#include "base/size_classes.h"
#include "base/slots.h"

namespace hm {

struct Shelf;

class BlockCache {
 public:
  constexpr BlockCache() = default;
  constexpr explicit BlockCache(void** bottom) noexcept : top_(bottom), limit_(bottom), bottom_(bottom) {}

  void* pop() noexcept { return pop(top()); }  // null if the cache is empty
  void* pop(void** top) noexcept {             // as just read
    void* block = pin_to_return_register(*top);
    if (HM_LIKELY(block != nullptr)) set_top(top - 1);
    return block;
  }
  // False if the cache is full.  top: as just read.
  bool push(void** top, void* block) noexcept {
    if (HM_UNLIKELY(top >= limit_)) return false;
    top[1] = block;
    set_top(top + 1);
    return true;
  }
  bool push(void* block) noexcept { return push(top(), block); }
  // Also false if the block is the one freed last.
  bool push_once(void* block) noexcept {
    void** top = this->top();
    return HM_LIKELY(*top != block) && push(top, block);
  }
  void* top_block() const noexcept { return *top(); }
  void** top() const noexcept { return top_.load(std::memory_order_relaxed); }  // relaxed: statistics read it
  void set_top(void** top) noexcept { top_.store(top, std::memory_order_relaxed); }
  // Moves the entries to new slots.
  void move_to(void** bottom) noexcept {
    size_t used = this->size();
    move_slots(bottom, this->bottom(), used + 1);
    limit_ = bottom + (limit_ - this->bottom());
    set_bottom(bottom);
    set_top(bottom + used);
  }
  void set_limit(size_t entries) noexcept { limit_ = bottom() + entries; }
  void** bottom() const noexcept { return bottom_.load(std::memory_order_relaxed); }  // relaxed: statistics read it
  void set_bottom(void** bottom) noexcept { bottom_.store(bottom, std::memory_order_relaxed); }
  size_t size() const noexcept { return static_cast<size_t>(top() - bottom_); }

  // For a thread that has claimed the heap: no later push of the heap's own thread succeeds.
  void close() noexcept { std::atomic_ref(limit_).store(bottom(), std::memory_order_relaxed); }

  // While the cache is full, so many blocks that this heap owns become FREE directly; then the slow path counts them.  None
  // after a refill, so that the next overflow takes the slow path and can resize the cache.  The heap is told by half of
  // its address, because the owner of a block is a hint anyway (superblock.h, S2).
  void free_directly(const Shelf* heap, uint32_t blocks) noexcept {
    direct_owner_ = half_of(heap);
    direct_left_ = static_cast<int32_t>(blocks);
  }
  bool frees_directly() const noexcept { return direct_owner_ != 0; }
  bool frees_directly(const Shelf* owner) const noexcept { return direct_owner_ == half_of(owner); }
  bool use_direct_free() noexcept { return --direct_left_ >= 0; }  // false: those are used up
  uint32_t direct_frees_left() const noexcept { return static_cast<uint32_t>(std::max(direct_left_, 0)); }

 private:
  friend struct Layout;
  static uint32_t half_of(const Shelf* heap) noexcept { return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(heap)); }

  std::atomic<void**> top_{nullptr};
  void** limit_ = nullptr;               // push fails from here on
  std::atomic<void**> bottom_{nullptr};  // the slot that holds null
  uint32_t direct_owner_ = 0;            // zero: none
  int32_t direct_left_ = 0;              // -1: the last one was refused
};
static_assert(sizeof(BlockCache) == kCacheStride);

}  // namespace hm

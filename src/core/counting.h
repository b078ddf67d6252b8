// Counting allocations for a profile (profile/sampler.h), without a counter on the fast path.
//
// While allocations are counted, the tables of classes lead every request to a countdown in place of a cache.  Malloc takes
// it for a cache that has no block, and goes a longer way, which counts and pops the cache of the class, a fixed distance
// away.  Free finds the cache by the block's superblock, and is as it was.  Whoever else finds a cache by a size, as a sized
// free does, finds no room there and goes the long way.
#pragma once
#include "core/block_cache.h"

namespace hm {

// Null, both: what the tops of caches point to that have no memory, and the tops of countdowns.
HM_HIDDEN extern constinit void *no_blocks, *no_counted_blocks;

// Of one class: how many blocks a thread may allocate before it takes a sample.
class Countdown {
 public:
  // From the caches of a heap to its countdowns, which lie behind it in the same order.
  static constexpr ptrdiff_t kDistance = 3936;

  // What is taken for a cache with this top.
  static bool is_behind(void** top) noexcept { return HM_LIKELY(top == &no_counted_blocks); }
  static Countdown& of(BlockCache& found) noexcept { return reinterpret_cast<Countdown&>(found); }
  BlockCache& cache() noexcept { return *reinterpret_cast<BlockCache*>(reinterpret_cast<char*>(this) - kDistance); }
  // Of memory that is all zero; and when another profile begins, perhaps by another thread.
  void open() noexcept {
    top_.store(&no_counted_blocks, std::memory_order_relaxed);
    set(kNotDrawn);
  }
  // A block is allocated.  True if it is the one to sample, or if that was never drawn.  Plain, because compilers do not fold
  // atomic accesses into one instruction: at worst a thread that another has open() this goes on with its last draw.
  bool count() noexcept {
    if constexpr (!kThreadSanitizer) return HM_UNLIKELY(--left_ < 0);
    int64_t left = __atomic_load_n(&left_, __ATOMIC_RELAXED) - 1;
    set(left);
    return left < 0;
  }
  bool is_drawn() const noexcept { return __atomic_load_n(&left_, __ATOMIC_RELAXED) > kNotDrawn / 2; }
  void set(int64_t blocks) noexcept { __atomic_store_n(&left_, blocks, __ATOMIC_RELAXED); }

 private:
  static constexpr int64_t kNotDrawn = INT64_MIN / 2;
  std::atomic<void**> top_;        // of a cache without a block
  [[maybe_unused]] void** limit_;  // null: without room
  int64_t left_;
  [[maybe_unused]] int64_t unused_;
};
static_assert(sizeof(Countdown) == kCacheStride);

class Counting {
 public:
  // Relaxed: whoever reads it late allocates a little that is not counted; and whoever reads it before it sees the
  // countdowns opened may take one sample too early.
  bool is_on() const noexcept { return on_.load(std::memory_order_relaxed); }
  void set(bool on) noexcept { on_.store(on, std::memory_order_relaxed); }  // for count_allocations (current_heap.h)
  // Whether heaps need countdowns, from the first profile on.  Relaxed: set before the registry's lock is taken to open
  // those of all heaps, and looked at under it.
  bool is_prepared() const noexcept { return prepared_.load(std::memory_order_relaxed); }
  void prepare() noexcept { prepared_.store(true, std::memory_order_relaxed); }

 private:
  std::atomic<bool> on_{false}, prepared_{false};
};
inline constinit Counting counting;

}  // namespace hm

// The small blocks of a thread's heap (threads/thread_heap.h), up to 32 KB.  One thread uses it at a time; when that thread
// ends, another inherits it whole.
//
// Invariants
//  H1  Written by the thread that uses the heap, except `shelf` (its own locks).
//  H2  cache c holds blocks of class c only, each at most once, each TAKEN (CACHED in the checked library).
//  H3  current[c] is held by the heap (S1); its cursor says how far it has been swept.
#pragma once
#include "core/cache_tuner.h"
#include "core/current_heap.h"
#include "core/superblock_pool.h"

namespace hm {

// Counters that the owner writes and statistics read.
class Counter {
 public:
  void add(uint64_t n) noexcept { value_.store(get() + n, std::memory_order_relaxed); }
  uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

inline constexpr uint32_t kOperationsPerTick = 512;
inline constexpr size_t kSlicesToShrink = 8;  // fewer in use than a tick ago

struct SmallHeap {
  static constexpr size_t kMaxFull = 3;                 // superblocks that a heap keeps to itself, but for producers:
  static constexpr size_t kProducerReuseDistance = 12;  // superblocks between a block's free and its reuse in a class of one

  // ---- fast path; first, where EmptyHeap has them too
  std::array<BlockCache, kClasses> caches;

  // ---- slow path
  struct ClassState {
    Superblock* current = nullptr;
    [[no_unique_address]] CacheTuner tuner;
    uint8_t probes = SuperblockPool::kMaxProbes;  // into the pool before a fresh superblock is opened
    bool full_searched = false;                   // through the full ones, in vain, since the last overflow or tick
  };
  std::array<ClassState, kClasses> classes;
  Shelf shelf;                      // full superblocks
  size_t capacity_bytes = 0;        // of all caches, an idle one's as it will be when it is used again
  uint32_t full_count = 0;          // in all full queues, about: other threads may take from them
  uint32_t operations_to_tick = 0;  // slow operations until the clock is read
  uint32_t ticks_in_round = 0;
  size_t slices_at_tick = 0;  // in use by the whole process
  Counter refills, flushes, cross_thread_frees;

  static const size_t kSlotBytes;  // behind the heap: the entries of its caches
  SmallHeap() noexcept;

  static SmallHeap* of(Shelf* shelf) noexcept {
    return reinterpret_cast<SmallHeap*>(reinterpret_cast<char*>(shelf) - offsetof(SmallHeap, shelf));
  }
  SuperblockQueue& full(ClassIndex c) noexcept { return shelf.queues[index_of(c)]; }
  BlockCache& cache(size_t offset) noexcept {
    return *reinterpret_cast<BlockCache*>(reinterpret_cast<char*>(this) + offset);
  }

  // The cache of c is empty: fills it and pops one.  Null: no memory.
  void* refill(ClassIndex c) noexcept;
  // The cache of the block's class is full.  An own block goes straight to FREE: its state byte is warm here.
  static bool give_back_own(Superblock& sb, BlockState& state, BlockCache& cache) noexcept {
    Shelf* owner = sb.owner();  // with a direct-free owner this can only be the thread's own
    if (HM_UNLIKELY(owner != cache.direct_free_owner() || !sb.has_witness_but(state))) return false;
    SmallHeap* heap = of(owner);
    if (HM_UNLIKELY(--heap->operations_to_tick == 0)) {
      heap->operations_to_tick = 1;  // the slow path lets it tick
      return false;
    }
    state.give_back();
    return true;
  }
  void overflow(void* block, Superblock& sb, BlockState& state) noexcept;  // the other cases
  // After every slow operation: whether it is time to look after the heap (upkeep/reclaim.h).
  // One that moved much memory counts for several.
  bool tick_is_due(uint32_t operations = 1) noexcept {
    if (HM_UNLIKELY(operations_to_tick <= operations)) return true;
    operations_to_tick -= operations;
    return false;
  }
  // At a tick: of idle classes nothing stays here.  True: the process shrinks, and a class of this heap is idle or its
  // blocks are being freed for good.
  bool on_tick() noexcept;
  void on_round() noexcept;     // a quarter of the decay time is over: what the caches do not need goes back
  void release_all() noexcept;  // caches, current and full superblocks to chunks and pool
  bool is_valid() noexcept;     // the user of the heap
  size_t cached_blocks(size_t c) const noexcept;        // of a class, just now; any thread
  static size_t first_capacity(ClassIndex c) noexcept;  // as the options allow

 private:
  Superblock* next_superblock(ClassIndex c) noexcept;
  void shelve(ClassIndex c, Superblock& sb) noexcept;
  void flush(ClassIndex c, size_t blocks) noexcept;
  void** near_slots(size_t c) const noexcept;
  void** wide_slots(size_t c) const noexcept;
  void activate(ClassIndex c) noexcept;
  void grow_if_too_small(ClassIndex c) noexcept;
  void set_capacity(ClassIndex c, size_t entries) noexcept;
  void give_up_surplus(ClassIndex c) noexcept;
  void release_idle(ClassIndex c) noexcept;
};

// The block an address belongs to in a superblock of any kind; the caller knows that it is a block's start.
struct BlockRef {
  Superblock& sb;
  BlockState& state;
};
BlockRef find_block(void* block) noexcept;

}  // namespace hm

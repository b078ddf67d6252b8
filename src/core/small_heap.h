// The part of a thread's heap (threads/thread_heap.h) that serves small blocks, up to 32 KB.  One thread uses it at a
// time; when that thread ends, another inherits the whole heap.
//
// Invariants
//  H1  Only the thread that uses the heap writes it, except `shelf`, which has its own locks, and what another thread takes
//      that has claimed the heap (H4).
//  H2  cache c holds only blocks of class c, each at most once, each TAKEN (CACHED in the checked library;
//      SAMPLED if the program pushed it by a handle, or by its size when a tracer had gone).
//  H3  The heap holds current[c] (S1), whose cursor says how far it has been swept.
//  H4  While `in_use` is set, nobody else claims the heap; a thread sets it before it uses more of its heap than the two
//      fast paths do, and the counts to the next look and tick.  While the heap is claimed, its thread only pops, pushes and
//      counts, and sooner or later waits (threads/claims.h).
#pragma once
#include <utility>

#include "core/cache_tuner.h"
#include "core/current_heap.h"
#include "core/superblock_pool.h"
#include "pages/options.h"

namespace hm {

inline constexpr uint32_t kOperationsPerTick = 512;
inline constexpr uint32_t kOperationsPerLook = 8;
inline constexpr uint32_t kLooksToShrink = 8;   // after large blocks, before they may bring a tick
inline constexpr uint32_t kSlicesToShrink = 8;  // that many fewer in use than at the last tick

enum class Claim : uint8_t {
  kNone,
  kWanted,   // by a thread that does not know yet whether the heap is in use
  kClaimed,  // that thread is taking what the heap keeps
  kEmptied,  // it has done so: the heap's thread has to open the caches again
};

// How much of the pool a heap searches for one class: half as many probes after each search in vain, and after five only
// every second time, for what is probed is in other threads' caches.
class PoolSearch {
 public:
  size_t probes() const noexcept { return std::max<size_t>(SuperblockPool::kMaxProbes >> in_vain_, 1); }
  bool is_due() noexcept { return !std::exchange(left_out_, false); }
  void on_success() noexcept { *this = {}; }
  void on_frees() noexcept { left_out_ = false; }  // by this heap, or perhaps by others
  void on_failure() noexcept {
    if (in_vain_ < kMostInVain) ++in_vain_;
    left_out_ = in_vain_ == kMostInVain;
  }

 private:
  static constexpr uint8_t kMostInVain = 5;
  uint8_t in_vain_ = 0;    // searches in a row
  bool left_out_ = false;  // the next one is
};

struct SmallHeap {
  static constexpr size_t kMaxFull = 3;                 // full superblocks per heap, over all classes; producers keep more:
  static constexpr size_t kProducerReuseDistance = 12;  // superblocks between a block's free and reuse in a producer class

  // ---- fast path; first, in the same place as in EmptyHeap
  std::array<BlockCache, kClasses> caches;

  // ---- slow path
  struct ClassState {
    Superblock* current = nullptr;
    [[no_unique_address]] CacheTuner tuner;
    PoolSearch search;           // before a fresh superblock is opened
    bool full_searched = false;  // the full ones were searched in vain since the last overflow or tick
  };
  std::array<ClassState, kClasses> classes;
  Shelf shelf;                      // full superblocks
  uint64_t active = 0;              // bit c: class c has a cache, with a capacity above zero
  uint32_t capacity_bytes = 0;      // of all caches
  uint32_t full_count = 0;          // in all full queues; approximate, because other threads may take some
  uint32_t operations_to_tick = 0;  // slow-path operations until the next tick
  uint32_t operations_at_look = 0;  // what operations_to_tick is when the clock is looked at next
  uint32_t ticks_in_round = 0;
  uint32_t large_to_look = kOperationsPerLook;  // operations on large blocks until the next look
  uint32_t large_looks = 0;                     // after those since the last tick
  uint32_t slices_at_tick = 0;                  // in use by the whole process
  uint32_t most_slices = 0;                     // the same, the most at any of those looks
  // ---- H4
  std::atomic<bool> in_use{true};  // written by the heap's thread; a heap without a thread is in use
  std::atomic<Claim> claim{Claim::kNone};
  bool handed_out = false;  // the program has pointers to caches, and may use these at any time; under in_use
  // ----
  std::atomic<uint32_t> thread{0};  // the system's number of the one that has it, for who looks from outside; 0: none
  Counter refills, flushes, cross_thread_frees;
  uint64_t tops_when_seen = 0;  // by the thread that claims

  static const size_t kBytesBehind;  // countdowns, and then the slots of its caches
  SmallHeap() noexcept;

  static BlockCache no_cache() noexcept;  // holds no block, and has no room

  void belongs_to(uint32_t number) noexcept { thread.store(number, std::memory_order_relaxed); }  // it is a number alone
  // Opened before any allocation is counted.
  Countdown& countdown(ClassIndex c) noexcept { return *(first_countdown() + index_of(c)); }
  void open_countdowns() noexcept {
    for (size_t c = 0; c < kClasses; ++c) countdown(ClassIndex(c)).open();
  }
  SuperblockQueue& full(ClassIndex c) noexcept { return shelf.queues[index_of(c)]; }
  BlockCache& cache(size_t offset) noexcept {
    return *reinterpret_cast<BlockCache*>(reinterpret_cast<char*>(this) + offset);
  }

  // The cache of c is empty: refills it and pops one block.  Null if there is no memory.
  void* refill(ClassIndex c) noexcept;
  // The cache of the block's class is full.  A block of the heap's own becomes FREE directly: its state byte is warm.
  static bool give_back_own(Superblock& sb, BlockState& state, BlockCache& cache) noexcept {
    if (HM_UNLIKELY(!cache.frees_directly(sb.owner()) || !sb.has_witness_but(state) || !cache.use_direct_free()))
      return false;
    state.give_back();
    return true;
  }
  void overflow(void* block, Superblock& sb, BlockState& state) noexcept;  // the other cases
  // Called after every slow-path operation; true if the heap's upkeep is due (upkeep/reclaim.h).
  bool upkeep_is_due() noexcept {
    count_operations(1);
    return HM_UNLIKELY(operations_to_tick <= operations_at_look);
  }
  // The same for one on a large block.  It brings the next look nearer, but not the tick, which would find caches idle that
  // are not; unless the process is a quarter smaller than at the largest such look since the last tick.
  bool upkeep_is_due_after_large(size_t bytes) noexcept {
    large_to_look -= static_cast<uint32_t>(std::min<size_t>(operations_of_large(bytes), large_to_look));
    if (HM_LIKELY(large_to_look > 0)) return false;
    uint32_t now = slices_in_use();
    most_slices = std::max(most_slices, now);
    if (++large_looks >= kLooksToShrink && now + std::max(most_slices / 4, kSlicesToShrink) <= most_slices) {
      slices_at_tick = most_slices;
      operations_to_tick = 0;
    }
    return true;
  }
  // The clock is looked at; true if a tick is due, too.
  bool on_look() noexcept {
    operations_at_look = operations_to_tick - std::min(operations_to_tick, kOperationsPerLook);
    large_to_look = kOperationsPerLook;
    return operations_to_tick == 0;
  }
  // At a tick: empties the caches of idle classes.  True if the process shrinks and a class of this heap is idle or its
  // blocks are being freed for good.
  bool on_tick() noexcept;
  void on_round() noexcept;     // after a quarter of the decay time: gives back what the caches do not need
  void release_all() noexcept;  // empties caches, releases current and full superblocks to chunks and pool
  // For the heap's thread, after another has emptied the caches.
  void open_caches() noexcept;
  // Full superblocks, and the current one, go to chunks and pool.  For the heap's thread, or one that has claimed the heap.
  void release_superblocks(ClassIndex c) noexcept;
  bool is_valid() noexcept;                             // for the heap's user
  size_t cached_blocks(size_t c) const noexcept;        // of class c, at this moment; any thread
  static size_t first_capacity(ClassIndex c) noexcept;  // within what options and budget allow

 private:
  Countdown* first_countdown() const noexcept {
    auto* start = reinterpret_cast<char*>(const_cast<SmallHeap*>(this));
    return reinterpret_cast<Countdown*>(start + Countdown::kDistance);
  }
  static uint32_t slices_in_use() noexcept { return static_cast<uint32_t>(slice_pool.used()); }
  // Where memory is limited, a few large blocks may be all that still fits below the limit.
  static size_t operations_of_large(size_t bytes) noexcept {
    return 1 + (options.limit == 0 ? bytes / (8 * kSlice) : bytes / kSlice);
  }
  void count_operations(uint32_t n) noexcept { operations_to_tick -= std::min(operations_to_tick, n); }
  void restart_tick() noexcept {
    operations_to_tick = kOperationsPerTick;
    operations_at_look = kOperationsPerTick - kOperationsPerLook;
    large_looks = 0;
  }
  Superblock* next_superblock(ClassIndex c) noexcept;
  void shelve(ClassIndex c, Superblock& sb) noexcept;
  void flush(ClassIndex c, size_t blocks) noexcept;
  void** near_slots(size_t c) const noexcept;
  void** wide_slots(size_t c) const noexcept;
  void** slots_around(size_t c, void** slot) const noexcept;
  void activate(ClassIndex c) noexcept;
  void grow_if_too_small(ClassIndex c) noexcept;
  void count_direct_frees(ClassIndex c) noexcept;
  void end_run(ClassIndex c) noexcept;
  void set_capacity(ClassIndex c, size_t entries) noexcept;
  void cut(ClassIndex c) noexcept;
  void give_up_surplus(ClassIndex c) noexcept;
  void release_idle(ClassIndex c) noexcept;
};

// The superblock and state of a block of any class; the caller knows that the address is the block's start.
struct BlockRef {
  Superblock& sb;
  BlockState& state;
};
BlockRef find_block(void* block) noexcept;

}  // namespace hm

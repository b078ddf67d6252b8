// The global pool: the superblocks that no heap keeps, by class.  Whatever memory any thread has freed, the next thread
// that needs some finds it here.  For any thread.
//
// It is sharded by the heap that held a superblock last: threads that allocate and free alternately get back their own
// superblocks, whose lines are still in their processor's cache, and do not contend for a lock.
#pragma once
#include <array>

#include "base/counter.h"
#include "core/superblock_queue.h"
#include "pages/slice_pool.h"

namespace hm {

// Free blocks that make a superblock worth taking.  (Hoard's empty fraction is a quarter.)
constexpr size_t min_free_blocks(ClassIndex c) { return blocks_of(c) / 32 + 1; }

// The superblocks that one heap has exhausted and keeps to itself, by class, oldest first.
struct Shelf {
  std::array<SuperblockQueue, kClasses> queues;
  Shelf* next = nullptr;  // the list of all shelves
  Counter made_free;      // bytes of blocks that this heap's user made FREE or left unswept; written like the heap (H1)
  uint32_t shard = 0;     // of the pool: its superblocks go there
  bool stranded = false;  // its thread did not survive a fork; never touched again
  bool own = false;       // of a heap of the program's own: its superblocks never go to the pool (threads/own_heaps.h)
};

inline bool belongs_to_own_heap(const Superblock& sb) noexcept { return sb.owner() != nullptr && sb.owner()->own; }

class SuperblockPool {
 public:
  static constexpr size_t kShards = 8;
  static constexpr size_t kMaxProbes = 16;
  void push(Superblock& sb) noexcept { sb.watch(true), queue_of(sb).push(sb); }
  void push_front(Superblock& sb) noexcept { sb.watch(true), queue_of(sb).push_front(sb); }  // the next to be acquired
  // The first superblock with at least `least` free blocks among `probes` of each shard, preferably one that `mine`
  // held last: its lines and live blocks are more likely this thread's.  Probes the shard of `mine`, then all others;
  // with fewer than kMaxProbes it probes just one other shard, round robin.
  Superblock* acquire(ClassIndex c, const Shelf* mine, size_t probes, size_t least) noexcept;
  Superblock* acquire(ClassIndex c, const Shelf* mine) noexcept { return acquire(c, mine, kMaxProbes, min_free_blocks(c)); }
  // Like acquire, but leaves the other shards alone while free slices are resident: a superblock made of those costs no
  // memory either, and a thread that allocates next to another thread's blocks shares lines with it.
  Superblock* acquire_near(ClassIndex c, const Shelf* mine, size_t probes, size_t least) noexcept;
  // A superblock of class c made of slices, of new memory as the last resort.  Before the footprint grows by another
  // eighth, the whole pool is searched once if anything became FREE, which bounds the footprint relative to what is in use
  // (docs/design.md).
  Superblock* fresh(ClassIndex c, const Shelf* mine) noexcept;
  // Slices for a large block, in the same way.
  SlicePool::Run fresh_run(size_t slices) noexcept;
  // Gives that many free bytes back to the system.  Free superblocks of the pool are included only when the footprint,
  // huge blocks counted, is about to grow by another eighth.
  void reclaim_before_growth(size_t bytes) noexcept;
  // Gives empty superblocks back to their chunks, after at most `probes` per class and shard.  Returns how many.
  size_t release_free(size_t probes) noexcept;
  void add(Shelf& shelf) noexcept;  // of a new heap; it stays forever
  // Gives the empty superblocks of all shelves back to their chunks.  Returns how many.
  size_t release_shelved() noexcept;
  // Calls visit(queue) for every queue of the pool and of the heaps, without a lock.
  template <class Visit>
  void for_each_queue(Visit visit) noexcept;
  // Bytes of blocks that became FREE, or were left unswept, since the program began.  A hint: a heap counts in batches of
  // 64 KB a class at most, a thread without a heap every 64th free.
  uint64_t made_free() noexcept;
  void repair(uint32_t before) noexcept;  // in the child of a fork: all queues of pool and shelves
  bool is_valid() noexcept;
  SuperblockQueue& queue(size_t shard, ClassIndex c) noexcept { return queues_[shard][index_of(c)]; }
  bool owns(const SuperblockQueue& queue) const noexcept {
    return address_of(&queue) - address_of(&queues_) < sizeof queues_;
  }

 private:
  Shelf* first_shelf() noexcept {
    LockGuard guard(shelves_lock_);
    return shelves_;
  }
  Superblock* acquire_from_others(ClassIndex c, const Shelf* mine, size_t probes, size_t least) noexcept;
  Superblock* acquired(Superblock* sb) noexcept;
  SuperblockQueue& queue_of(Superblock& sb) noexcept { return queue(shard_of(sb.owner()), sb.class_index()); }
  static size_t shard_of(const Shelf* shelf) noexcept { return shelf == nullptr ? 0 : shelf->shard; }
  void scan_if_due(size_t wanted) noexcept;
  SlicePool::Run map_run(size_t slices) noexcept;  // if the system refuses, takes what is empty
  bool scan(size_t wanted) noexcept;               // wanted: a class, or kClasses.  True: found a sixteenth of the footprint
  std::array<std::array<SuperblockQueue, kClasses>, kShards> queues_;
  Lock shelves_lock_;
  Shelf* shelves_ = nullptr;
  uint32_t shelf_count_ = 0;
  std::atomic<uint32_t> next_turn_{0};     // relaxed: it does not matter which other shard is probed first
  std::atomic<size_t> reclaim_at_{0};      // bytes; a race costs one more scan of the pool
  std::atomic<size_t> scan_at_chunks_{2};  // raised by a scan in vain; relaxed: a race costs one more scan
  // What had become FREE when each class was scanned for last; the last: for none.  Relaxed, as the line above.
  std::array<std::atomic<uint64_t>, kClasses + 1> made_free_at_scan_{};
};
extern SuperblockPool superblock_pool;

// Shelves are added in front and stay forever: from the first one on, the list can be followed without its lock.
template <class Visit>
void SuperblockPool::for_each_queue(Visit visit) noexcept {
  for (auto& shard : queues_)
    for (SuperblockQueue& queue : shard) visit(queue);
  for (Shelf* shelf = first_shelf(); shelf != nullptr; shelf = shelf->next)
    for (size_t c = 0; c < kClasses && !shelf->stranded; ++c) visit(shelf->queues[c]);
}

// For any queue: gives empty superblocks back to their chunks, after at most `probes`.
size_t release_free(SuperblockQueue& queue, size_t probes) noexcept;
// Pops up to `probes` superblocks: the first of `mine` with at least `least` free blocks, or else the first other one.
// Those with fewer go to the end of the queue.
Superblock* pop_usable(SuperblockQueue& queue, size_t probes, size_t least, const Shelf* mine) noexcept;
void release(Superblock& sb) noexcept;  // an empty one, held by the caller
// The holder of a block gives it back.  If it was the last of a superblock that waits in the pool, the superblock goes
// back to its chunk; the caller must not touch the superblock after this.
HM_NOINLINE void give_back_perhaps_last(Superblock& sb, BlockState& state) noexcept;
inline void give_back(Superblock& sb, BlockState& state) noexcept {
  HM_LIKELY(sb.has_witness_but(state)) ? state.give_back() : give_back_perhaps_last(sb, state);
}

}  // namespace hm

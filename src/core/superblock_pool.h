// The global pool: superblocks that no heap keeps, by class.  Memory freed by anyone, anywhere, is found here by whoever
// needs it next.  Any thread.
//
// It is in shards, by the heap that held a superblock last: threads that allocate and free in turns find their own again,
// whose lines are in their caches, and wait for nobody's lock.
#pragma once
#include <array>

#include "core/superblock_queue.h"
#include "pages/slice_pool.h"

namespace hm {

// Free blocks that make a superblock worth taking.  Hoard's empty fraction is a quarter: hoard.txt, section 3.
constexpr size_t min_free_blocks(ClassIndex c) { return blocks_of(c) / 32 + 1; }

// The superblocks that one heap has exhausted and keeps to itself, oldest first, by class.
struct Shelf {
  std::array<SuperblockQueue, kClasses> queues;
  Shelf* next = nullptr;  // all of them
  uint32_t shard = 0;     // of the pool, where its superblocks go
  bool stranded = false;  // its thread did not survive a fork: never touched again
};

class SuperblockPool {
 public:
  static constexpr size_t kShards = 8;
  static constexpr size_t kMaxProbes = 16;
  void push(Superblock& sb) noexcept { sb.watch(true), queue_of(sb).push(sb); }
  void push_front(Superblock& sb) noexcept { sb.watch(true), queue_of(sb).push_front(sb); }  // the next to be acquired
  // The first of `probes` in a shard that has at least `least` free blocks.  Of these, one that `mine` held last is preferred:
  // its lines and its live blocks are more likely this thread's.  Looks into the shard of `mine`, then into all others;
  // into one of them, in turn, with less than kMaxProbes.
  Superblock* acquire(ClassIndex c, const Shelf* mine, size_t probes, size_t least) noexcept;
  Superblock* acquire(ClassIndex c, const Shelf* mine) noexcept { return acquire(c, mine, kMaxProbes, min_free_blocks(c)); }
  // As acquire, but not from other shards while free slices are resident: a superblock of those costs no memory either, and
  // who allocates next to another thread's blocks shares lines with it.
  Superblock* acquire_near(ClassIndex c, const Shelf* mine, size_t probes, size_t least) noexcept;
  // A superblock of class c from slices, from new memory in the end.  Before the footprint grows by another eighth,
  // the whole pool is searched once: so it stays within a stated factor of what is in use (docs/design.md).
  Superblock* fresh(ClassIndex c, const Shelf* mine) noexcept;
  // Slices for a large block, likewise.
  SlicePool::Run fresh_run(size_t slices) noexcept;
  // Gives that much of what is free back to the system.  Free superblocks of the pool count only before the footprint,
  // huge blocks and all, grows by another eighth.
  void reclaim_before_growth(size_t bytes) noexcept;
  // Gives empty superblocks back to their chunks; at most `probes` of each class and shard.  Returns how many.
  size_t release_free(size_t probes) noexcept;
  void add(Shelf& shelf) noexcept;  // of a new heap, for good
  // Of all shelves: empty superblocks to their chunks.  Returns how many.
  size_t release_shelved() noexcept;
  void repair(uint32_t before) noexcept;  // in the child of a fork: all queues, of pool and shelves
  bool is_valid() noexcept;
  SuperblockQueue& queue(size_t shard, ClassIndex c) noexcept { return queues_[shard][index_of(c)]; }
  bool owns(const SuperblockQueue& queue) const noexcept {
    return address_of(&queue) - address_of(&queues_) < sizeof queues_;
  }

 private:
  Superblock* acquire_from_others(ClassIndex c, const Shelf* mine, size_t probes, size_t least) noexcept;
  Superblock* acquired(Superblock* sb) noexcept;
  SuperblockQueue& queue_of(Superblock& sb) noexcept { return queue(shard_of(sb.owner()), sb.class_index()); }
  static size_t shard_of(const Shelf* shelf) noexcept { return shelf == nullptr ? 0 : shelf->shard; }
  void scan_if_due(size_t wanted) noexcept;
  SlicePool::Run map_run(size_t slices) noexcept;  // or, if the system refuses, of what is empty
  bool scan(size_t wanted) noexcept;               // a class, or kClasses; true: a sixteenth of the footprint was found
  std::array<std::array<SuperblockQueue, kClasses>, kShards> queues_;
  Lock shelves_lock_;
  Shelf* shelves_ = nullptr;
  uint32_t shelf_count_ = 0;
  std::atomic<uint32_t> next_turn_{0};     // relaxed: which other shard is looked into first does not matter
  std::atomic<size_t> reclaim_at_{0};      // bytes; a race costs a look through the pool
  std::atomic<size_t> scan_at_chunks_{2};  // raised by a search in vain; relaxed, a race costs a search
};
extern SuperblockPool superblock_pool;

// Of any queue: gives empty superblocks back to their chunks, after at most `probes`.
size_t release_free(SuperblockQueue& queue, size_t probes) noexcept;
// Pops up to `probes` superblocks until one of `mine` has at least `least` free blocks, or else the first other that has;
// those without room go to the end.
Superblock* pop_usable(SuperblockQueue& queue, size_t probes, size_t least, const Shelf* mine) noexcept;
void release(Superblock& sb) noexcept;  // an empty one that the caller holds
// The holder of a block gives it back; if it was the last of its superblock and that waits in the pool, the superblock
// goes back to its chunk.  The caller must not touch the superblock behind it.
HM_NOINLINE void give_back_perhaps_last(Superblock& sb, BlockState& state) noexcept;
inline void give_back(Superblock& sb, BlockState& state) noexcept {
  HM_LIKELY(sb.has_witness_but(state)) ? state.give_back() : give_back_perhaps_last(sb, state);
}

}  // namespace hm

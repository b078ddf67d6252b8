// Superblocks: the blocks of one class, in one slice of 32 KB or in four (pages/region.h).
//
// Invariants
//  S1  A superblock is in exactly one place: current of one heap, in one SuperblockQueue, or with the thread that just
//      took it from there.  That thread is its holder; only the holder sweeps it.
//  S2  owner names the heap that held it last, by its shelf.  It is a hint that affects only speed; but a superblock of a heap
//      of the program's own (threads/own_heaps.h) has that heap as its owner as long as one of its blocks has a holder.
//  S3  The states of blocks that do not exist are FREE, and the state area of an unused slice is all FREE.
//  S4  A superblock goes back to its chunk only when its holder has seen every state FREE with acquire: then neither the
//      program nor any cache holds one of its blocks.
//  S5  What any thread's free reads here (the first line) changes only while no block has a holder, except owner and
//      witness.
#pragma once
#include "base/codegen.h"
#include "base/size_classes.h"
#include "core/block_state.h"
#include "pages/region.h"

namespace hm {

class SuperblockQueue;
struct Shelf;  // of a heap (superblock_pool.h); identifies the heap as an owner

inline constexpr size_t kSweepGroup = 64;  // the states of one line; of the smallest classes they are swept together
// How many more blocks than were wanted a sweep may bring.
constexpr size_t sweep_surplus(ClassIndex c) {
  if (size_of(c) < kLine) return kSweepGroup - 1;
  return blocks_of(c) > kSweepGroup ? StateGroup::kBlocks - 1 : 0;
}

// Never FREE: the witness of a superblock that need not be returned as soon as it is empty.
inline constinit BlockState no_last_block{BlockState::kTaken};

// The descriptor of a slice of blocks.
struct alignas(2 * kLine) Superblock : Slice {
  // ---- read by every thread that frees a block (S5), like the head; the same in all slices of a superblock except for
  // the kind
  uint32_t blocks = 0;
  char* start = nullptr;  // of the first block
  BlockState* states = nullptr;
  std::atomic<Shelf*> owner_{nullptr};
  // A state that was not FREE when last checked, one for each slice.  no_last_block while a heap holds the superblock.
  std::atomic<BlockState*> witness_{nullptr};
  // ---- written by the holder
  alignas(kLine) uint32_t cursor = 0;  // the first state that the sweep has not seen yet
  uint32_t holes = 0;                  // bit i: page i was given back since the last sweep began (upkeep/hole_passes.h)
  bool holes_refused = false;          // the system refused one since then: a page of it is locked
  uint64_t found = 0;                  // of the eight states in front of the cursor: those that take_next saw FREE and left
  // ---- under the lock of the queue that the superblock is in
  Superblock* next = nullptr;
  Superblock* previous = nullptr;
  std::atomic<SuperblockQueue*> home_{nullptr};

  static Superblock& of(uintptr_t address) noexcept { return of(*at(address)); }
  static Superblock& of(Slice& slice) noexcept { return static_cast<Superblock&>(slice); }
  ClassIndex class_index() const noexcept { return static_cast<ClassIndex>(cache_offset / kCacheStride); }

  // Any thread.  Relaxed: a hint (S2).
  Shelf* owner() const noexcept { return owner_.load(std::memory_order_relaxed); }
  void set_owner(Shelf* heap) noexcept {  // for the holder, on the first slice
    for (size_t i = 0; i < slices_of(class_index()); ++i) this[i].owner_.store(heap, std::memory_order_relaxed);
  }
  // The queue that the superblock is in, or null if it has a holder.  Changes under that queue's lock.  Any thread may
  // ask; relaxed, because the caller takes the lock and asks again.
  SuperblockQueue* home() const noexcept { return home_.load(std::memory_order_relaxed); }
  void set_home(SuperblockQueue* queue) noexcept { home_.store(queue, std::memory_order_relaxed); }

  void format(ClassIndex c) noexcept;          // on a fresh run of slices_of(c) slices
  void clear() noexcept;                       // before its slices are given back
  void prefetch(ClassIndex c) const noexcept;  // what a holder reads first; c: its class, which was not read yet
  size_t bytes() const noexcept { return slices_of(class_index()) * kSlice; }
  // Counts free blocks, stopping soon after `enough`.  For the holder.
  size_t free_blocks(size_t enough = SIZE_MAX) const noexcept;
  bool is_empty() const noexcept;  // for the holder (S4)
  // For the holder of the block that has this state.  The first: is another block known not to be FREE?  The second
  // searches: are all others FREE?  Relaxed: the answers are hints, because other blocks change meanwhile.
  bool has_witness_but(const BlockState& state) const noexcept {
    BlockState* witness = witness_.load(std::memory_order_relaxed);
    return witness != &state && !witness->looks_free();
  }
  bool all_free_but(const BlockState& state) noexcept;
  void set_witness(BlockState* state) noexcept { witness_.store(state, std::memory_order_relaxed); }
  // For the holder: from now on, whether the thread that frees the last block is to release the superblock.
  void watch(bool whether) noexcept;
  bool is_valid() const noexcept;  // for the holder
  // For the holder, before it sweeps: the sweep starts at the first block, and fills what holes there are.
  void begin_sweep(Shelf* heap) noexcept;
  // Moves free blocks from the cursor on to `to`, until there are at least `want` or the superblock ends; at most
  // sweep_surplus more.  Returns how many.  The lowest address of a group comes last, so that a stack pops it first; the
  // others follow by address, or eight blocks apart if blocks are smaller than a line, a whole group of 64 is free, and
  // it is not for one thread alone.  The hardened library mixes neighbours.  For the holder.
  size_t sweep(void** to, size_t want, bool alone = false) noexcept;
  // In place of sweep, for a heap of the program's own: the next free block from the cursor on, which is OWN then; or null,
  // and the cursor is at the end.  The hardened library takes neighbours in any order.  For the holder.
  void* take_next() noexcept;
  void free_all() noexcept;  // all blocks become FREE, whoever held them; for the holder

 private:
  void format_tail(const Superblock& first) noexcept;
  bool take_whole_group(void** to) noexcept;  // the group at the cursor; false: some of its blocks are not FREE
  size_t take_group(void** to, size_t at_most) noexcept;
  size_t sweep_in_order(void** to, size_t want, bool alone) noexcept;
};
static_assert(sizeof(Superblock) == sizeof(Slice));

// Finds the block that an address lies in without a division: offset * ceil(2^32 / size) has the quotient above bit 32;
// below bit 32 it is smaller than the factor if the remainder is zero.
class BlockPlace {
 public:
  BlockPlace(const Superblock& sb, uintptr_t address) noexcept
      : inverse_(hide_from_optimizer(uint64_t{sb.inverse})), product_((address - address_of(sb.start)) * inverse_) {}
  bool exact() const noexcept {  // the address is the block's start
    return static_cast<uint32_t>(product_) < static_cast<uint32_t>(inverse_);
  }
  size_t index() const noexcept { return hide_from_optimizer(product_) >> 32; }

 private:
  uint64_t inverse_;  // its 32 bits; AArch64 would widen them once more before it multiplies
  uint64_t product_;
};

}  // namespace hm

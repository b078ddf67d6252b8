// Superblocks: blocks of one class in a slice of 32 KB, or four (pages/region.h).
//
// Invariants
//  S1  A superblock is in exactly one place: current of one heap, in one SuperblockQueue, or in the hands of the
//      thread that just took it from there.  That thread is its holder; only the holder sweeps it.
//  S2  owner names the heap that held it last, by its shelf.  It is a hint: nothing but speed depends on it.
//  S3  The states of blocks that do not exist are FREE, and the state area of an unused slice is all FREE.
//  S4  A superblock goes back to its chunk only when its holder has seen every state FREE with acquire: then no block
//      of it is in the program's hands or in any cache.
//  S5  What a free by any thread reads here (the first line) changes only while no block is in anybody's hands,
//      except owner and witness.
#pragma once
#include "base/codegen.h"
#include "base/size_classes.h"
#include "core/block_state.h"
#include "pages/region.h"

namespace hm {

class SuperblockQueue;
struct Shelf;  // of a heap (superblock_pool.h): what names the heap as an owner

inline constexpr size_t kSweepGroup = 64;  // states of one line are taken together

// Never FREE: the witness of superblocks that nobody waits for to become empty.
inline constinit BlockState no_last_block{BlockState::kTaken};

// The descriptor of a slice of blocks.
struct alignas(2 * kLine) Superblock : Slice {
  // ---- read by every thread that frees a block (S5), as the head is; the same in all slices of a superblock, but for the
  // kind
  uint32_t blocks = 0;
  char* start = nullptr;  // of the first block
  BlockState* states = nullptr;
  std::atomic<Shelf*> owner_{nullptr};
  // A state that was not FREE when somebody looked; each slice its own.  While a heap has the superblock, no_last_block.
  std::atomic<BlockState*> witness_{nullptr};
  // ---- written by the holder
  alignas(kLine) uint32_t cursor = 0;  // first state the sweep has not seen yet
  // ---- under the lock of the queue that it is in
  Superblock* next = nullptr;
  Superblock* previous = nullptr;
  std::atomic<SuperblockQueue*> home_{nullptr};

  static Superblock& of(uintptr_t address) noexcept { return of(*at(address)); }
  static Superblock& of(Slice& slice) noexcept { return static_cast<Superblock&>(slice); }
  ClassIndex class_index() const noexcept { return static_cast<ClassIndex>(cache_offset / kCacheStride); }

  // Any thread.  Relaxed: a hint (S2).
  Shelf* owner() const noexcept { return owner_.load(std::memory_order_relaxed); }
  void set_owner(Shelf* heap) noexcept {  // the holder, of the first slice
    for (size_t i = 0; i < slices_of(class_index()); ++i) this[i].owner_.store(heap, std::memory_order_relaxed);
  }
  // The queue that it is in; null: it has a holder.  Changes under that queue's lock.  Any thread; relaxed, for who asks
  // takes the lock and asks again.
  SuperblockQueue* home() const noexcept { return home_.load(std::memory_order_relaxed); }
  void set_home(SuperblockQueue* queue) noexcept { home_.store(queue, std::memory_order_relaxed); }

  void format(ClassIndex c) noexcept;          // a fresh run of slices_of(c) slices
  void clear() noexcept;                       // before its slices go back
  void prefetch(ClassIndex c) const noexcept;  // what a holder will read first; c: its class, for that is not read yet
  // Counts free blocks, up to `enough` of them or a few more.  The holder.
  size_t free_blocks(size_t enough = SIZE_MAX) const noexcept;
  bool is_empty() const noexcept;  // the holder (S4)
  // The holder of a block, whose state this is: whether another block is known not to be FREE, and, after a search, whether
  // all others are.  Relaxed: hints, for blocks come and go.
  bool has_witness_but(const BlockState& state) const noexcept {
    BlockState* witness = witness_.load(std::memory_order_relaxed);
    return witness != &state && !witness->looks_free();
  }
  bool all_free_but(const BlockState& state) noexcept;
  void set_witness(BlockState* state) noexcept { witness_.store(state, std::memory_order_relaxed); }
  // The holder: from now on whoever frees the last block is told, or nobody is.
  void watch(bool whether) noexcept;
  bool is_valid() const noexcept;  // the holder
  // Moves free blocks from the cursor on to `to`, in groups of 64, until there are `want` or the end is reached; at most
  // want + 63 of them.  Returns how many.  Of a group the lowest address comes last, so that a stack pops it first; then
  // the others by address, or eight blocks apart if they are smaller than a line and all of the group is free.
  // The holder.
  size_t sweep(void** to, size_t want) noexcept;

 private:
  void format_tail(const Superblock& first) noexcept;
  bool take_whole_group(void** to) noexcept;  // of the group at the cursor; false: it is not empty
  size_t take_group(void** to) noexcept;
};
static_assert(sizeof(Superblock) == sizeof(Slice));

// The block that an address lies in, found without a division: offset * ceil(2^32 / size) has the quotient above bit 32,
// and below it less than the factor if the remainder is zero.
class BlockPlace {
 public:
  BlockPlace(const Superblock& sb, uintptr_t address) noexcept
      : product_((address - address_of(sb.start)) * sb.inverse), inverse_(sb.inverse) {}
  bool exact() const noexcept { return static_cast<uint32_t>(product_) < inverse_; }  // the address is its start
  size_t index() const noexcept { return hide_from_optimizer(product_) >> 32; }

 private:
  uint64_t product_;
  uint32_t inverse_;
};

}  // namespace hm

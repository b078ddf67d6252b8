// A superblock: S bytes, aligned to S, with a header and blocks of one size (sections 3 and 3.1).
//
// The paper finds a block's superblock by a pointer in a header of the block.  Here superblocks are aligned, so the
// block's address suffices: no block needs a header, and a block of 16 bytes costs 16 bytes.
#pragma once
#include <atomic>

#include "base/lock.h"
#include "baselines/common/regions.h"
#include "baselines/hoard/size_classes.h"

namespace hm::hoard {

class Heap;

// Fullness groups, by the fraction of a superblock's blocks that is free: none; up to f; up to 2f; and so on; all.
inline constexpr size_t kFull = 0;
inline constexpr size_t kUpToF = 1;
inline constexpr size_t kEmpty = kMaxSteps + 1;
inline constexpr size_t kGroups = kEmpty + 1;

class Superblock {
 public:
  static Superblock& of(const void* block) noexcept { return *Regions::of<Superblock>(block, options.superblock); }

  // Assigns it to this size class: for a new superblock, or a completely empty one that is recycled.
  void dedicate(size_t size_class) noexcept;

  // For the holder of the owner's lock.
  void* take_block() noexcept;  // there must be a free one
  void put_block(void* block) noexcept;

  size_t size_class() const noexcept { return size_class_; }
  size_t block_size() const noexcept { return block_size_; }
  size_t blocks() const noexcept { return blocks_; }
  size_t in_use() const noexcept { return in_use_; }                   // number of its blocks in use
  size_t u() const noexcept { return size_t{in_use_} * block_size_; }  // s.u of Fig. 2
  size_t a() const noexcept { return size_t{blocks_} * block_size_; }  // what could be in use: see heap.h
  size_t fullness_group() const noexcept;
  bool is_valid() const noexcept;

  // Whether a block can start there; for any thread, also with a made-up address.
  bool may_start(const void* block) const noexcept;
  // Whether the block may be live, as far as a quick check can tell.  For the holder of the owner's lock.
  bool may_be_live(const void* block) const noexcept { return block < fresh_ && block != free_ && in_use_ > 0; }

  // free() must know whose lock to take before it holds that lock; then it checks again.  Only the holder of the
  // owner's lock changes the owner, and a lock orders everything else, so these need no order.
  Heap* owner() const noexcept { return owner_.load(std::memory_order_relaxed); }
  void set_owner(Heap* heap) noexcept { owner_.store(heap, std::memory_order_relaxed); }

  // Table 3: whether it came from another heap with objects that are still in it, and whose it was.
  bool is_used() const noexcept { return used_; }
  void left(const Heap* heap) noexcept { former_ = heap; }
  void came_to(const Heap* heap) noexcept { used_ = in_use_ > 0 && (used_ || former_ != heap); }

  // The fullness group in whose list it is.
  size_t group() const noexcept { return group_; }
  void set_group(size_t group) noexcept { group_ = static_cast<uint8_t>(group); }

  Lock lock;  // of Fig. 2

 private:
  friend class SuperblockList;
  struct FreeBlock {
    FreeBlock* next;
  };
  char* first_block() noexcept { return reinterpret_cast<char*>(this + 1); }
  const char* first_block() const noexcept { return reinterpret_cast<const char*>(this + 1); }

  uint32_t block_size_ = 0;
  std::atomic<Heap*> owner_{nullptr};
  Superblock* next_ = nullptr;
  Superblock* previous_ = nullptr;
  FreeBlock* free_ = nullptr;  // the free list, LIFO
  char* fresh_ = nullptr;      // blocks from here on were never handed out, and are not in the list
  const Heap* former_ = nullptr;
  uint16_t blocks_ = 0;
  uint16_t in_use_ = 0;
  uint8_t size_class_ = 0;
  uint8_t group_ = 0;
  bool used_ = false;
};
static_assert(sizeof(Superblock) == kLine, "the first block starts at a cache line of its own");

// The superblocks of one fullness group; the one that a block was last freed to is at the front.
class SuperblockList {
 public:
  constexpr SuperblockList() = default;
  Superblock* front() const noexcept { return front_; }
  static Superblock* after(const Superblock* s) noexcept { return s->next_; }
  void push_front(Superblock& s) noexcept;
  void remove(Superblock& s) noexcept;
  bool is_linked() const noexcept;  // the links agree in both directions

 private:
  Superblock* front_ = nullptr;
};

}  // namespace hm::hoard

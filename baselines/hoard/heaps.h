// All the heaps, and how superblocks get from one to another (Fig. 2, malloc lines 5 to 14, free lines 9 to 12).
//
// Locks are taken in this order: one superblock's, one processor heap's, the global heap's; then those in base.
#pragma once
#include "baselines/common/large_blocks.h"
#include "baselines/hoard/heap.h"

namespace hm::hoard {

// Under the global heap's lock.
struct Traffic {
  uint64_t to_global = 0, from_global = 0;  // superblocks transferred
  uint64_t objects_that_came_along = 0;     // live objects in superblocks that came from the global heap: Table 3
  uint64_t recycled = 0;                    // superblocks given to another class
  size_t superblocks = 0;                   // from the system
  uint64_t large_objects = 0;               // allocated
  // Table 4: the maximum of bytes allocated from the system and in use by the program, large objects included.  Sampled
  // when memory comes from the system, and now and then when a superblock comes from the global heap.
  size_t max_allocated = 0, max_in_use = 0;
};

class Heaps {
 public:
  constexpr Heaps() = default;
  // Reads the options and initialises, once.  False if the C library does not have the environment yet.
  bool start(bool even_without_environment) noexcept;

  // Fig. 2, malloc line 2.  Null until start() has succeeded.
  Heap* of_this_thread() noexcept {
    Heap* heap = mine_;
    return HM_LIKELY(heap != nullptr) ? heap : choose();
  }
  Heap& global() noexcept { return heaps_[0]; }
  size_t count() const noexcept { return count_; }           // of the processors' heaps
  Heap& operator[](size_t i) noexcept { return heaps_[i]; }  // 0: the global one

  // A superblock for a heap whose lock the caller holds and that has no space for the class; the heap owns it from now
  // on.  Null if there is no memory.
  Superblock* acquire(Heap& heap, size_t size_class) noexcept;
  // For a heap whose lock the caller holds and that has crossed the emptiness threshold.
  void transfer_to_global(Heap& heap) noexcept;

  void count_large_object() noexcept;
  size_t in_use() noexcept;  // bytes, large objects not included

  LargeBlocks large;
  Regions superblocks{0};  // of S bytes each, once S is known
  Traffic traffic;
  Lock start_lock;

 private:
  HM_COLD Heap* choose() noexcept;
  Superblock* find_or_recycle(Heap& heap, size_t size_class) noexcept;
  void note_peaks() noexcept;

  static constinit thread_local Heap* mine_;
  size_t count_ = 0;
  std::array<Heap, kMaxHeaps + 1> heaps_{};
};

extern constinit Heaps heaps;

}  // namespace hm::hoard

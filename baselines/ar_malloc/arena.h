// An arena: one of the "logical arenas" that the heap is partitioned into, with a lock and its own slabs.
//
// One lock for each arena.  The article mentions a lock for each slab class as an alternative and leaves it open; its two
// curves, "no contention" up to as many threads as arenas and "contention" beyond, are those of one lock for each arena.
#pragma once
#include "base/lock.h"
#include "baselines/ar_malloc/slab.h"
#include "baselines/common/regions.h"

namespace hm::ar_malloc {

#if defined(HM_AR_MALLOC_GLOBAL_LOCK)
inline constexpr bool kGlobalLock = true;  // the variant that the article compares with: one lock around everything
#else
inline constexpr bool kGlobalLock = false;
#endif

struct FreeBlock {
  FreeBlock* next;
};

struct Blocks {  // linked, with a null at the end
  FreeBlock* first = nullptr;
  uint32_t count = 0;
};

class Arena {
 public:
  struct Counters {
    uint64_t locks = 0;                       // how often the lock was taken for blocks
    uint64_t out = 0, back = 0, foreign = 0;  // blocks; foreign: back from threads of other arenas
    uint64_t slabs = 0, cuts = 0;             // slabs from the system; how often one was cut for a class
    size_t bytes_out = 0;                     // in blocks that the program or a cache holds

    void add(const Counters& other) noexcept;
  };

  constexpr Arena() = default;

  // Lowest addresses first; fewer than requested, or none, if the system has no memory.
  Blocks take(ClassIndex c, uint32_t count) noexcept;
  // Takes back the blocks of its own slabs; returns the others.  giver: the arena of the thread that frees them.
  FreeBlock* give_back(FreeBlock* list, const Arena* giver, const char* function) noexcept;

  Counters counters() noexcept;
  bool is_valid() noexcept;
  Lock& lock() noexcept { return lock_; }

 private:
  Slab* add_slab(ClassIndex c) noexcept;
  void give_back_one(Slab& slab, FreeBlock* block) noexcept;
  SlabList& bin(ClassIndex c) noexcept { return bins_[index_of(c)]; }

  Lock lock_;
  std::array<SlabList, kSlabClasses> bins_{};  // by class, the slabs with a free block
  SlabList empty_;                             // slabs without a block in use, usable for any class
  Slab* all_ = nullptr;
  Counters counters_;
};

inline constexpr size_t kMaxArenas = 256;
extern std::array<Arena, kMaxArenas> arenas;
extern Regions slab_memory;  // slabs of all arenas come from it; none goes back

// Returns each block to the arena of its slab, taking the lock once for all of an arena.
inline void give_back(FreeBlock* list, const Arena* giver, const char* function) noexcept {
  while (list != nullptr) list = Slab::of(list).arena->give_back(list, giver, function);
}

}  // namespace hm::ar_malloc

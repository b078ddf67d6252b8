// Local memory of one thread: the current local superblock, and the exhausted ones (LSL).  Fig. 5 and 8.
//
// For the owner only: no function here may be called by two threads at a time.
#pragma once
#include "baselines/hmalloc_paper/count.h"
#include "baselines/hmalloc_paper/superblock.h"

namespace hm::hmalloc_paper {

struct LocalHeap {
  LocalSuperblock* current;
  SuperblockList<LocalSuperblock> lsl;
  Count superblocks_64k, superblocks_4m, lsl_walk_steps;

  // Fig. 5.  size >= 1; null if there is no memory.
  void* allocate(size_t size) noexcept {
    if (HM_UNLIKELY(current == nullptr) && !open_first()) return nullptr;
    size = align_up(size, kGranule);                                                      // line 2; align8 in the paper
    if (HM_UNLIKELY(size >= current->head.size / 2)) return large_blocks.allocate(size);  // lines 16 and 17
    if (HM_UNLIKELY(current->available_space() <= size) && !replace_current(size)) return nullptr;
    return current->take(size);
  }
  // Fig. 8, for a block in a local superblock.  Ends the program if the superblock shows that it is no live block of
  // this heap.
  void free(void* block, LocalSuperblock& superblock, const char* function) noexcept {
    if (HM_UNLIKELY(superblock.owner != this || !superblock.holds(block))) wrong(block, superblock, function);
    superblock.give_back();
  }
  bool is_valid() noexcept;

 private:
  bool open_first() noexcept;
  bool replace_current(size_t size) noexcept;
  LocalSuperblock* traverse_lsl(size_t size) noexcept;
  [[noreturn]] void wrong(void* block, LocalSuperblock& superblock, const char* function) noexcept;
};

}  // namespace hm::hmalloc_paper

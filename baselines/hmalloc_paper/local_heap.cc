#include "baselines/hmalloc_paper/local_heap.h"

#include "base/report.h"

namespace hm::hmalloc_paper {

bool LocalHeap::open_first() noexcept {
  current = LocalSuperblock::make(kFirstSuperblock, *this);
  if (current == nullptr) return false;
  superblocks_64k.add(1);
  return true;
}

// Lines 9 to 13.  The paper leaves the superblock that it finds in the LSL and inserts it again when it is exhausted
// again: the list becomes a ring, and the next traversal never ends.  Here the superblock leaves the list.
bool LocalHeap::replace_current(size_t size) noexcept {
  lsl.append(*current);
  LocalSuperblock* found = traverse_lsl(size);
  if (found != nullptr) {
    lsl.remove(*found);
  } else {
    found = LocalSuperblock::make(kNextSuperblock, *this);
    if (found == nullptr) {
      lsl.remove(*current);
      return false;
    }
    superblocks_4m.add(1);
  }
  current = found;
  return true;
}

// "A suitable local superblock whose available space is larger than the requested size."
LocalSuperblock* LocalHeap::traverse_lsl(size_t size) noexcept {
  uint64_t steps = 0;
  LocalSuperblock* superblock = lsl.first;
  for (; superblock != nullptr; superblock = superblock->next) {
    ++steps;
    if (superblock->available_space() > size) break;
  }
  lsl_walk_steps.add(steps);
  return superblock;
}

void LocalHeap::wrong(void* block, LocalSuperblock& superblock, const char* function) noexcept {
  die_on_misuse(function, block,
                superblock.owner != this ? "a local block of another thread's heap" : "not a local block, or freed already");
}

bool LocalHeap::is_valid() noexcept {
  if (current != nullptr && (current->owner != this || !current->is_valid())) return false;
  LocalSuperblock* before = nullptr;
  for (LocalSuperblock* superblock = lsl.first; superblock != nullptr; superblock = superblock->next) {
    if (superblock == current || superblock->owner != this || superblock->previous != before) return false;
    if (!superblock->is_valid()) return false;
    before = superblock;
  }
  return lsl.last == before;
}

}  // namespace hm::hmalloc_paper

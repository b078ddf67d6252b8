#include "baselines/hmalloc_paper/shared_heap.h"

#include "base/report.h"

namespace hm::hmalloc_paper {

bool SharedHeap::open_first(uint32_t size_class, Counts& counts) noexcept {
  current = SharedSuperblock::make(kFirstSuperblock, size_class);
  if (current == nullptr) return false;
  counts.superblocks_64k.add(1);
  return true;
}

// Lines 17 to 25.  As in the LSL, the superblock that is found leaves the list.
Flag* SharedHeap::replace_current(Counts& counts) noexcept {
  ssl.append(*current);
  SharedSuperblock* found = traverse_ssl(counts);
  if (found != nullptr) {
    ssl.remove(*found);
    current = found;
    return current->take_index_th();
  }
  found = SharedSuperblock::make(kNextSuperblock, current->size_class);
  if (found == nullptr) {
    ssl.remove(*current);
    return nullptr;
  }
  counts.superblocks_4m.add(1);
  current = found;
  return current->take_vacant();
}

// A superblock counts as usable if its Index-th block is free; other free blocks in it are not considered.
SharedSuperblock* SharedHeap::traverse_ssl(Counts& counts) noexcept {
  uint64_t steps = 0;
  SharedSuperblock* superblock = ssl.first;
  for (; superblock != nullptr; superblock = superblock->next) {
    ++steps;
    if (superblock->index_th()->is_free()) break;
  }
  counts.ssl_walks.add(1);
  counts.ssl_walk_steps.add(steps);
  if (superblock != nullptr) counts.ssl_walk_hits.add(1);
  return superblock;
}

void SharedHeap::freed_twice(Flag* flag, const char* function) noexcept {
  die_on_misuse(function, flag + 1, "not a block, or freed already");
}

bool SharedHeap::cache_is_valid(uint32_t size_class) noexcept {
  if (cache.count > BlockCacheList::kMax) return false;
  for (size_t i = 0; i < cache.count; ++i) {
    Superblock* head = Superblock::of(cache.blocks[i]);
    if (head == nullptr || head->kind != SuperblockKind::kShared) return false;
    auto* superblock = reinterpret_cast<SharedSuperblock*>(head);
    Flag* flag = superblock->flag_of(cache.blocks[i]);
    if (superblock->size_class != size_class || flag == nullptr || flag + 1 != cache.blocks[i] || flag->is_free())
      return false;
    for (size_t j = 0; j < i; ++j)
      if (cache.blocks[j] == cache.blocks[i]) return false;
  }
  return true;
}

bool SharedHeap::is_valid(uint32_t size_class) noexcept {
  if (current != nullptr && (current->size_class != size_class || !current->is_valid())) return false;
  SharedSuperblock* before = nullptr;
  for (SharedSuperblock* superblock = ssl.first; superblock != nullptr; superblock = superblock->next) {
    if (superblock == current || superblock->size_class != size_class || superblock->previous != before) return false;
    if (superblock->vacant_objects != 0 || !superblock->is_valid()) return false;
    before = superblock;
  }
  return ssl.last == before && cache_is_valid(size_class);
}

}  // namespace hm::hmalloc_paper

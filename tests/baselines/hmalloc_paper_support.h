// What the tests of hmalloc_paper share.
#pragma once
#include <baselines/hmalloc_paper.h>

#include <csignal>
#include <set>

#include "contract_support.h"

namespace hmalloc_paper_test {

using namespace hm::hmalloc_paper;
using namespace contract;

inline SharedSuperblock& shared_superblock_of(const void* block) {
  return *reinterpret_cast<SharedSuperblock*>(Superblock::of(block));
}
inline bool is_from_system(const void* block) { return LargeBlocks::holds(block); }

// The compiler knows what malloc's result is, and that nothing of it lies in front.
inline Flag* flag_of(void* block) { return static_cast<Flag*>(hide_from_optimizer(block)) - 1; }
// What a thread does whose block cache list is full: Fig. 9, lines 5 and 6.
inline void free_by_flag(void* block) { SharedHeap::reset(flag_of(block), "free"); }

inline uint32_t class_of(size_t size) { return size_to_class(block_size(size)); }
// The calling thread's.
inline SharedHeap& shared_heap(size_t size) { return local_heap()->shared[class_of(size)]; }

// All vacant blocks of the superblock that the next one comes from, in their order.
inline std::vector<void*> exhaust_one(size_t size) {
  std::vector<void*> blocks{get(size)};
  while (shared_heap(size).current->vacant_objects > 0) blocks.push_back(get(size));
  return blocks;
}

inline auto aborted = testing::KilledBySignal(SIGABRT);

}  // namespace hmalloc_paper_test

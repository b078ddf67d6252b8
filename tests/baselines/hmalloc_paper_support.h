// What the tests of hmalloc_paper share.
#pragma once
#include <baselines/hmalloc_paper.h>

#include <csignal>
#include <set>

#include "contract_support.h"

namespace hm::hmalloc_paper::test {

using contract::on_thread;

inline SharedSuperblock& shared_superblock_of(const void* block) {
  return *reinterpret_cast<SharedSuperblock*>(Superblock::of(block));
}
inline LocalSuperblock& local_superblock_of(const void* block) {
  return *reinterpret_cast<LocalSuperblock*>(Superblock::of(block));
}
inline bool is_local(const void* block) {
  Superblock* superblock = Superblock::of(block);
  return superblock != nullptr && superblock->kind == SuperblockKind::kLocal;
}
inline bool is_from_system(const void* block) { return LargeBlocks::holds(block); }

// The compiler knows what malloc's result is, and that nothing of it lies in front.
inline Flag* flag_of(void* block) { return static_cast<Flag*>(hide_from_optimizer(block)) - 1; }
// What a thread does whose block cache list is full: Fig. 9, lines 5 and 6.
inline void free_by_flag(void* block) { SharedHeap::reset(flag_of(block), "free"); }

inline uint32_t class_of(size_t size) { return size_to_class(block_size(size)); }
// The calling thread's.
inline SharedHeap& shared_heap(size_t size) { return local_heap()->shared[class_of(size)]; }

inline std::vector<void*> allocate_many(size_t count, size_t size) {
  std::vector<void*> blocks;
  for (size_t i = 0; i < count; ++i) blocks.push_back(hmp_shared_alloc(size));
  return blocks;
}
// All blocks of the first superblock of the size's class, in their order.
inline std::vector<void*> exhaust_first(size_t size) {
  void* first = hmp_shared_alloc(size);
  std::vector<void*> blocks{first};
  while (blocks.size() < shared_superblock_of(first).total_objects) blocks.push_back(hmp_shared_alloc(size));
  return blocks;
}

inline auto aborted = testing::KilledBySignal(SIGABRT);

}  // namespace hm::hmalloc_paper::test

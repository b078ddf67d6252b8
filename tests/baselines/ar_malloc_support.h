// What the tests of ar_malloc share.
#pragma once
#include <cstdlib>
#include <set>

#include "base/os_pages.h"
#include "baselines/ar_malloc/ar_malloc.h"
#include "baselines/ar_malloc/thread_cache.h"
#include "contract_support.h"

namespace hm::ar_malloc {

// Reads the options with this number of arenas; before anything else is done.
inline void start_with(const char* count) {
  setenv("AR_MALLOC_ARENAS", count, 1);
  start();
}
inline constexpr uint32_t kBatch = kMaxList / 2;
inline void free(void* block) { deallocate(block, "free"); }
inline Slab& slab_of(const void* block) { return Slab::of(block); }
inline bool is_in(const void* block, const Arena& arena) { return slab_of(block).arena == &arena; }
inline CacheList& list_of(size_t size) { return cache.lists[index_of(class_of(size))]; }
using contract::on_thread;

inline std::vector<void*> allocate_many(size_t count, size_t size) {
  std::vector<void*> blocks;
  for (size_t i = 0; i < count; ++i) {
    blocks.push_back(allocate(size));
    EXPECT_NE(blocks.back(), nullptr);
  }
  return blocks;
}
inline void free_all(const std::vector<void*>& blocks) {
  for (void* block : blocks) free(block);
}

// All arenas together.
inline Arena::Counters counted() {
  Arena::Counters sum;
  for (Arena& arena : arenas) sum.add(arena.counters());
  return sum;
}

}  // namespace hm::ar_malloc

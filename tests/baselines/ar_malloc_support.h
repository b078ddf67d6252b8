// What the tests of ar_malloc share.
#pragma once
#include <cstdlib>

#include "base/os_pages.h"
#include "baselines/ar_malloc/ar_malloc.h"
#include "baselines/ar_malloc/thread_cache.h"
#include "contract_support.h"

namespace ar_malloc_test {

using namespace hm::ar_malloc;
using namespace contract;

// Reads the options with this number of arenas and this cache; before anything else is done.
inline void start_with(const char* count, const char* cache = nullptr) {
  setenv("AR_MALLOC_ARENAS", count, 1);
  if (cache != nullptr) setenv("AR_MALLOC_CACHE", cache, 1);
  ar_malloc::start();
}
inline constexpr uint32_t kBatch = kMaxList / 2;
inline Slab& slab_of(const void* block) { return Slab::of(block); }
inline bool is_in(const void* block, size_t arena) { return slab_of(block).arena == &arenas[arena]; }
inline CacheList& list_of(size_t size) { return cache.lists[index_of(class_of(size))]; }

// All arenas together.
inline Arena::Counters counted() {
  Arena::Counters sum;
  for (Arena& arena : arenas) sum.add(arena.counters());
  return sum;
}

}  // namespace ar_malloc_test

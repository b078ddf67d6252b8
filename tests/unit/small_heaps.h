// What the tests of small heaps share: this thread's heap, seen from inside, and ways to use it.
#pragma once
#include "core/small_heap.h"
#include "support.h"

namespace hm::test {

inline constexpr size_t kGroup = 64;
inline constexpr ClassIndex k64 = class_of(64), k512 = class_of(512);

inline SmallHeap::ClassState& state_of(ClassIndex c) { return my_heap()->classes[index_of(c)]; }
inline BlockCache& cache_of(ClassIndex c) { return my_heap()->caches[index_of(c)]; }
inline size_t entries(ClassIndex c) { return cache_of(c).size(); }
inline size_t capacity(ClassIndex c) { return state_of(c).tuner.capacity(); }
inline size_t cached_bytes() {
  size_t bytes = 0;
  for (ClassIndex c : all_classes()) bytes += entries(c) * size_of(c);
  return bytes;
}
// Allocates so many blocks, then frees them, so many times.
inline void use_batches(size_t blocks, ClassIndex c, int rounds = 1) {
  for (int i = 0; i < rounds; ++i) free_all(allocate_many(blocks, size_of(c)));
}
inline void make_most_of_a_tick() { use_batches(128 + 350, class_of(4096)); }

// Each begins with a heap that has a cache of 64 bytes as large as it is at first.
struct SmallHeaps : NothingIsLost {
  void SetUp() override { use_batches(1, k64); }
};

}  // namespace hm::test

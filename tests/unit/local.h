// What the tests of local memory share.
#pragma once
#include "local/local_heap.h"
#include "support.h"

namespace hm::test {

inline LocalChunk& chunk_of(void* block) { return LocalChunk::of(address_of(block)); }
inline size_t unit_of(void* block) { return address_of(block) % kChunk / kUnit; }
inline hm_local_unit_& counts_of(void* block) { return chunk_of(block).units[unit_of(block)]; }
inline LocalHeap& my_local_heap() { return my_thread_heap().local; }
inline size_t local_chunks() {
  size_t n = 0;
  for (LocalChunk* chunk = my_local_heap().chunks(); chunk != nullptr; chunk = chunk->next) ++n;
  return n;
}

inline std::vector<void*> allocate_local(size_t n, size_t size) { return allocate_many(n, size, hm_local_alloc); }
inline void free_local(const std::vector<void*>& blocks) {
  for (void* block : blocks) hm_local_free(block);
}

}  // namespace hm::test

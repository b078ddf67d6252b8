// The heap of the calling thread.
#pragma once
#include <hmalloc/hmalloc_local.h>

#include "core/counting.h"

namespace hm {

struct SmallHeap;

// Stands in for the heap of a thread that has none: its caches are both empty and full, and so is what lies where a heap has
// countdowns.  Of it only the tables of classes are ever written (counting.h); they lie here so that the fast path needs one
// base address for caches and table.
struct EmptyHeap {
  std::array<BlockCache, kClasses> caches;
  std::array<uint16_t, kSmallMax / kLine> shared_offsets;  // as below, of a shared request, by (size - 1) / 64
  std::array<char, Countdown::kDistance - kClasses * kCacheStride - sizeof(shared_offsets)> unused;
  std::array<BlockCache, kClasses> countdowns;
  std::array<uint16_t, kSmallMax / kGranule> offsets;  // of the cache that serves a request, by (size - 1) / 16

  size_t cache_offset(size_t index) const noexcept { return offset_in(offsets[index]); }
  size_t shared_cache_offset(size_t index) const noexcept { return offset_in(shared_offsets[index]); }

 private:
  // A plain load of two bytes, because compilers do not fold an atomic one into the address.  Either answer will do.
  static size_t offset_in(const uint16_t& entry) noexcept {
    return kThreadSanitizer ? __atomic_load_n(&entry, __ATOMIC_RELAXED) : entry;
  }
};
static_assert(offsetof(EmptyHeap, countdowns) == Countdown::kDistance);
HM_HIDDEN extern constinit EmptyHeap empty_heap;
void count_allocations(bool on) noexcept;  // one thread at a time

// Where the thread's heap is, as an offset from empty_heap; zero means none.  A pointer would have to be initialised, and
// malloc can be called before the first thread's variables are (by an IFUNC resolver, while the program is being relocated).
HM_HIDDEN extern constinit thread_local ptrdiff_t heap_offset;

// The compiler moves no access to a heap from one operation into another, wherever they are inlined: while a thread is
// stopped, one operation on its caches is under way at most (threads/claims.h).
inline SmallHeap* my_heap() noexcept {
  keep_apart();
  return reinterpret_cast<SmallHeap*>(reinterpret_cast<char*>(&empty_heap) + heap_offset);
}
inline bool have_heap() noexcept { return heap_offset != 0; }

// Whether what is inline in programs finds the thread's caches.  No offset from empty_heap, because a program may have a copy
// of its own of what that is counted from.
inline void show_caches(bool whether) noexcept {
  char* caches = reinterpret_cast<char*>(my_heap()) - kCacheStride;  // threads/thread_heap.h
  if constexpr (!kChecked) hm_local_caches_ = whether && have_heap() ? caches : nullptr;
}
inline void set_my_heap(SmallHeap* heap) noexcept {  // null: none
  heap_offset = heap == nullptr ? 0 : reinterpret_cast<char*>(heap) - reinterpret_cast<char*>(&empty_heap);
  show_caches(!counting.is_on());
}

}  // namespace hm

// The heap of the calling thread.
#pragma once
#include <hmalloc/hmalloc_local.h>

#include "core/block_cache.h"

namespace hm {

struct SmallHeap;

// Stands in for the heap of a thread that has none: its caches are both empty and full.  It is never written.  The
// table of classes lies beside it so that the fast path needs one base address for both.
struct EmptyHeap {
  std::array<BlockCache, kClasses> caches;
  std::array<uint16_t, kSmallMax / kGranule> cache_offset;  // by (size - 1) / 16
};
HM_HIDDEN extern constinit EmptyHeap empty_heap;

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
inline void set_my_heap(SmallHeap* heap) noexcept {  // null: none
  heap_offset = heap == nullptr ? 0 : reinterpret_cast<char*>(heap) - reinterpret_cast<char*>(&empty_heap);
  // For what is inline in programs: no offset, because a program may have a copy of its own of what that is counted from.
  if constexpr (!kChecked)
    hm_local_caches_ = heap == nullptr ? nullptr : reinterpret_cast<char*>(heap) - kCacheStride;  // threads/thread_heap.h
}

}  // namespace hm

// Claims: how a thread takes what another live thread keeps in its heap, and probably sleeps.
//
// A thread that sleeps may have been stopped anywhere, in the middle of one push or pop too, which hmalloc_local.h compiles
// into programs.  Neither path can be asked to say so, for it would cost them something.  So a collector takes from the other
// end of each cache, in four steps, with a barrier on all processors (membarrier) after each of the first three: what a
// thread starts after the barrier sees the step, and of what it started before, only one operation is still going on.
//
//  1. It asks for the heap.  After the barrier it lets go of a heap in use; a thread that wants to use its heap later sees
//     that it is wanted, and waits (HeapUse).  So the heap's thread can do no more than pop and push.
//  2. It closes the caches.  After the barrier one push at most is still going on; no other one will succeed.
//  3. It takes the entry below the topmost and leaves null in its place, a fence: a later pop that comes so far finds the
//     cache empty.  A pop of that entry itself may be going on.
//  4. After the barrier it looks whether the top is still above the fence.  If so, it stays there, because nothing is pushed
//     any more; so nobody has popped the fence's block, and all below it are the collector's.  The cache begins at the fence
//     from now on.  Otherwise the thread is awake: the fence's block goes back to its slot.
//
// What an operation under way may touch, the topmost entry and the slot above it, is left alone, so one block of each class
// stays.  With its next operation that does not end on a fast path the thread opens its caches again.
//
// Not claimed are heaps whose caches the program has handles of: nothing keeps their operations apart, so several may be
// going on at once.  Without membarrier nothing is claimed.
#pragma once
#include "base/lock.h"
#include "threads/thread_heap.h"

namespace hm {

class Claims {
 public:
  // For the list of all heaps (Registry::newest), which may be followed without the registry's lock.  The first notes where
  // the caches stand; the second takes what those keep that have not moved since: cached blocks, superblocks, large runs.
  void look(ThreadHeap* newest) noexcept;
  void collect(ThreadHeap* newest) noexcept;
  // For the heap's thread: waits for the end of a claim.
  HM_COLD void settle(ThreadHeap& heap) noexcept;
  // In the child of a fork.
  void repair(uint32_t before) noexcept;

 private:
  static constexpr size_t kAtOnce = 16;  // heaps
  struct Fence {
    void** slot = nullptr;
    void* block = nullptr;
  };
  struct Claimed {
    ThreadHeap* heap;
    std::array<Fence, kClasses> fences;
  };
  template <class Visit>
  void for_each_cache(Visit visit) noexcept;
  ThreadHeap* want_some(ThreadHeap* heap) noexcept;
  void let_go_of_those_in_use() noexcept;
  void take() noexcept;

  Lock lock_;
  std::array<Claimed, kAtOnce> claimed_{};
  size_t count_ = 0;
};
extern Claims claims;

// The calling thread uses its heap, beyond the fast paths.  May be nested.
class [[nodiscard]] HeapUse {
 public:
  explicit HeapUse(ThreadHeap& heap) noexcept : heap_(heap), outer_(begin(heap)) {}
  ~HeapUse() {
    if (!outer_) end(heap_);
  }
  HeapUse(const HeapUse&) = delete;
  HeapUse& operator=(const HeapUse&) = delete;

  // True if it is in use already.  The order of store and load is the business of the collector's barrier; only the compiler
  // must keep it.  Acquire: what the last claim did to the heap happened before.
  static bool begin(ThreadHeap& heap) noexcept {
    if (heap.in_use.load(std::memory_order_relaxed)) return true;
    heap.in_use.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (HM_UNLIKELY(heap.claim.load(std::memory_order_acquire) != Claim::kNone)) claims.settle(heap);
    return false;
  }
  // Release: what was done to the heap happens before a claim.
  static void end(ThreadHeap& heap) noexcept { heap.in_use.store(false, std::memory_order_release); }

 private:
  ThreadHeap& heap_;
  bool outer_;
};

}  // namespace hm

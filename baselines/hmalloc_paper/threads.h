// The heaps, and which thread has which (section 3): each thread has one of its own, there is no global one, and a new
// thread inherits the whole heap of a dead one.
#pragma once
#include "base/lock.h"
#include "baselines/hmalloc_paper/local_heap.h"
#include "baselines/hmalloc_paper/shared_heap.h"

namespace hm::hmalloc_paper {

// In zeroed memory of its own, which is never freed.
struct Heap {
  LocalHeap local;
  SharedHeap::Counts counts;
  Heap* next;         // of all heaps
  Heap* next_orphan;  // of those whose thread has ended
  std::array<SharedHeap, kClasses> shared;

  bool is_valid() noexcept;
};

inline constinit thread_local Heap* my_heap = nullptr;

// Null if the calling thread's heap is gone, or there is no memory for one.
Heap* attach() noexcept;

// getLocalHeap of Fig. 5 and 6.
inline Heap* local_heap() noexcept {
  Heap* heap = my_heap;
  return HM_LIKELY(heap != nullptr) ? heap : attach();
}

// Serves allocations by threads without a heap of their own, mostly late destructors.
struct Fallback {
  Lock lock;
  Heap heap;
};
extern Fallback fallback;

struct Registry {
  Lock lock;
  Heap* all;
  Heap* orphans;
  size_t heaps;        // number made so far
  uint64_t inherited;  // how often a thread got a dead thread's
};
extern Registry registry;

// Calls visit(heap) for every heap, the fallback included; their threads may be using them.
template <class Visit>
void for_each_heap(Visit visit) noexcept {
  LockGuard guard(registry.lock);
  for (Heap* heap = registry.all; heap != nullptr; heap = heap->next) visit(*heap);
  visit(fallback.heap);
}

// True for a thread whose heap is gone already.
bool thread_has_ended() noexcept;

void before_fork() noexcept;
void after_fork_in_parent() noexcept;
void after_fork_in_child() noexcept;

}  // namespace hm::hmalloc_paper

// The heaps, and which thread has which (section 3): each thread has one to itself, there is no global one, and a new
// thread inherits the heap of a dead one whole.
#pragma once
#include "base/lock.h"
#include "baselines/hmalloc_paper/local_heap.h"
#include "baselines/hmalloc_paper/shared_heap.h"

namespace hm::hmalloc_paper {

// In zeroed memory of its own, for good.
struct Heap {
  LocalHeap local;
  SharedHeap::Counts counts;
  Heap* next;         // of all
  Heap* next_orphan;  // of those whose thread is dead
  std::array<SharedHeap, kClasses> shared;

  bool is_valid() noexcept;
};

inline constinit thread_local Heap* my_heap = nullptr;

// Null: the calling thread has none any more, or there is no memory for one.
Heap* attach() noexcept;

// getLocalHeap of Fig. 5 and 6.
inline Heap* local_heap() noexcept {
  Heap* heap = my_heap;
  return HM_LIKELY(heap != nullptr) ? heap : attach();
}

// For what threads allocate without a heap of their own: destructors that run late, mostly.
struct Fallback {
  Lock lock;
  Heap heap;
};
extern Fallback fallback;

struct Registry {
  Lock lock;
  Heap* all;
  Heap* orphans;
  size_t heaps;        // made so far
  uint64_t inherited;  // how often a thread got a dead one's
};
extern Registry registry;

// visit(heap) for every heap, the fallback included; their threads may be at work in them.
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

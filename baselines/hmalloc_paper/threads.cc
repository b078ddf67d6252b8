#include "baselines/hmalloc_paper/threads.h"

#include <climits>
#include <new>

#include "base/os_pages.h"
#include "base/thread_exit.h"
#include "baselines/common/fork_locks.h"

namespace hm::hmalloc_paper {

constinit Registry registry{};
constinit Fallback fallback{};
void leave(void* heap) noexcept;

namespace {

// How often this thread's destructors have called us, and whether its heap is gone.
constinit thread_local int rounds = 0;
constinit thread_local bool ended = false;

constinit ThreadExit thread_exit(leave);
constinit ForkLocks<6> held_for_fork;

// The order in which these locks are taken together.
template <class Visit>
void for_each_lock(Visit visit) noexcept {
  for (Lock* lock :
       {&fallback.lock, &registry.lock, &first_superblocks.lock(), &next_superblocks.lock(), &large_blocks.lock()})
    visit(*lock);
}

void give_up(Heap& heap) noexcept {
  ended = true;
  my_heap = nullptr;  // before another thread may inherit it: late destructors must not find it
  LockGuard guard(registry.lock);
  heap.next_orphan = registry.orphans;
  registry.orphans = &heap;
}

// The dead thread's last writes happen before ours, because it released the lock that we take.
Heap* inherit() noexcept {
  LockGuard guard(registry.lock);
  Heap* heap = registry.orphans;
  if (heap == nullptr) return nullptr;
  registry.orphans = heap->next_orphan;
  ++registry.inherited;
  return heap;
}

Heap* make_heap() noexcept {
  void* memory = os::map(sizeof(Heap), os::page_size());
  if (memory == nullptr) return nullptr;
  auto* heap = new (memory) Heap;  // mapped memory is zero already
  LockGuard guard(registry.lock);
  heap->next = registry.all;
  registry.all = heap;
  ++registry.heaps;
  return heap;
}

}  // namespace

bool thread_has_ended() noexcept { return ended; }

Heap* attach() noexcept {
  if (ended) return nullptr;
  Heap* heap = inherit();
  if (heap == nullptr) heap = make_heap();
  if (heap == nullptr) return nullptr;
  my_heap = heap;
  if (thread_exit.watch(heap)) return heap;  // it may call malloc
  give_up(*heap);                            // nobody would tell us that the thread ends
  return nullptr;
}

// A destructor of thread-specific data.  Others may run after it and free the thread's local blocks, so the heap stays
// for all rounds of destructors but one: in the last, run-times that watch threads are gone.
void leave(void* heap) noexcept {
  if (++rounds < PTHREAD_DESTRUCTOR_ITERATIONS - 1 && thread_exit.watch(heap)) return;
  give_up(*static_cast<Heap*>(heap));
}

bool Heap::is_valid() noexcept {
  if (!local.is_valid()) return false;
  for (uint32_t c = 0; c < kClasses; ++c)
    if (!shared[c].is_valid(c)) return false;
  return true;
}

// Other threads' heaps are copied as they are, maybe in the middle of a change.  In the child nobody owns or inherits
// them; their blocks can still be freed, because a free does not read its block's heap.
void before_fork() noexcept {
  for_each_lock([](Lock& lock) { held_for_fork.take(lock); });
}
void after_fork_in_parent() noexcept { held_for_fork.release(); }

// The thread has a new id in the child; the locks that it holds must name that.
void after_fork_in_child() noexcept {
  uint32_t before = rename_thread();
  for_each_lock([before](Lock& lock) { lock.adopt_after_fork(before); });
  held_for_fork.release();
}

}  // namespace hm::hmalloc_paper

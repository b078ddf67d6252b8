#include "hmalloc/registry.h"

#include <utility>

#include "base/fork_locks.h"
#include "base/thread_exit.h"
#include "hmalloc/huge.h"
#include "hmalloc/slice_pool.h"
#include "hmalloc/superblock_pool.h"

namespace hm {

constinit Registry registry;
void detach(void* heap) noexcept;

namespace {

constinit thread_local bool ended = false;
constinit ThreadExit thread_exit(detach);
constinit ForkLocks<SuperblockPool::kShards * kClasses + 16> held_for_fork;

// Every global lock in the one order in which fork may take them: those held while another is taken come first.
template <class Visit>
void for_each_global_lock(Visit visit) noexcept {
  visit(superblock_pool.shelves_lock());
  for (size_t shard = 0; shard < SuperblockPool::kShards; ++shard)
    for (size_t c = 0; c < kClasses; ++c) visit(superblock_pool.queue(shard, ClassIndex(c)).lock());
  visit(huge_lock());
  visit(thread_exit.lock());
  slice_pool.for_each_lock(visit);
}

}  // namespace

bool thread_has_ended() noexcept { return ended; }

// Runs among the destructors of thread-specific data.
void detach(void* pointer) noexcept {
  auto* heap = static_cast<ThreadHeap*>(pointer);
  heap->local.park();
  ended = true;
  set_my_heap(nullptr);  // R2: before the heap is published
  registry.publish(*heap);
}

ThreadHeap* Registry::create() noexcept {
  link_start();
  ThreadHeap* heap = ThreadHeap::create();
  if (heap == nullptr) return nullptr;
  superblock_pool.add(heap->shelf);
  LockGuard guard(lock_);
  heap->id = count_++;
  heap->live = true;
  heap->next = heaps_;
  heaps_ = heap;
  return heap;
}

ThreadHeap* Registry::pop_dead() noexcept {
  LockGuard guard(lock_);
  ThreadHeap* heap = dead_;
  if (heap != nullptr) {
    dead_ = heap->next_dead;
    heap->live = true;
  }
  return heap;
}

void Registry::publish(ThreadHeap& heap) noexcept {
  LockGuard guard(lock_);
  heap.live = false;
  heap.drained = heap.aged = false;
  heap.next_dead = dead_;
  dead_ = &heap;
}

// The dead heap's last writes happened before publish released the lock that pop_dead acquired.
ThreadHeap* Registry::attach() noexcept {
  ThreadHeap* heap = pop_dead();
  if (heap == nullptr) heap = create();
  if (heap == nullptr) return nullptr;
  set_my_heap(heap);
  heap->local.resume();
  thread_exit.watch(heap);  // may call malloc
  return heap;
}

bool Registry::is_due(ThreadHeap& heap, Drain which) noexcept {
  bool disturbed = heap.local.take_disturbed();
  if (heap.drained || which == Drain::kAll) return disturbed || !heap.drained;
  if (which == Drain::kDisturbed && !disturbed) return false;
  return std::exchange(heap.aged, true);
}

void Registry::drain_dead(Drain which) noexcept {
  ThreadHeap* taken = nullptr;
  {
    LockGuard guard(lock_);
    ThreadHeap** link = &dead_;
    while (*link != nullptr) {
      ThreadHeap* heap = *link;
      if (is_due(*heap, which)) {
        *link = heap->next_dead;
        heap->next_dead = taken;
        taken = heap;
      } else {
        link = &heap->next_dead;
      }
    }
  }
  while (taken != nullptr) {
    ThreadHeap* heap = taken;
    taken = heap->next_dead;
    heap->drain();
    LockGuard guard(lock_);
    heap->drained = true;
    heap->next_dead = nullptr;
    ThreadHeap** link = &dead_;  // behind the ones that are still warm
    while (*link != nullptr) link = &(*link)->next_dead;
    *link = heap;
  }
}

void Registry::drain_fallback() noexcept {
  LockGuard guard(fallback_lock_);
  if (fallback_ != nullptr) fallback_->drain();
}

bool Registry::is_valid() noexcept {
  LockGuard guard(lock_);
  for (ThreadHeap* heap = dead_; heap != nullptr; heap = heap->next_dead)
    if (heap->live || heap->shelf.stranded || !heap->is_valid()) return false;
  return true;
}

// The fallback's holder may take the registry's lock, so it comes first; from then on no other thread is in here.
void Registry::before_fork() noexcept {
  held_for_fork.take(fallback_lock_);
  held_for_fork.take(lock_);
  for_each_global_lock([](Lock& lock) { held_for_fork.take(lock); });
}

void Registry::after_fork_in_parent() noexcept { held_for_fork.release(); }

// Other threads' heaps may have been copied in the middle of a change: they stay readable, so that their blocks can be
// freed, and are never used again.  Only this thread's, the fallback and the dead ones, all under our locks, are whole.
void Registry::after_fork_in_child() noexcept {
  rename_locks();
  for (ThreadHeap* heap = heaps_; heap != nullptr; heap = heap->next)
    heap->shelf.stranded = heap->shelf.stranded || (heap != my_heap() && heap != fallback_);
  for (ThreadHeap* heap = dead_; heap != nullptr; heap = heap->next_dead) heap->shelf.stranded = false;
  after_fork_in_parent();
}

// The thread has a new id in the child; locks that it holds must name that.
void Registry::rename_locks() noexcept {
  uint32_t before = rename_thread();
  auto rename = [before](Lock& lock) { lock.rename_holder(before); };
  rename(lock_);
  rename(fallback_lock_);
  for_each_global_lock(rename);
  if (!have_heap()) return;
  for (SuperblockQueue& queue : my_heap()->shelf.queues) rename(queue.lock());
}

}  // namespace hm

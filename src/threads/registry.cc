#include "threads/registry.h"

#include <utility>

#include "base/os_pages.h"
#include "base/thread_exit.h"
#include "core/superblock_pool.h"
#include "large/huge.h"
#include "pages/footprint.h"
#include "pages/slice_pool.h"

namespace hm {

constinit Registry registry;

namespace {

constinit thread_local bool ended = false;
constinit ThreadExit thread_exit(detach);

void let_go(ThreadHeap& heap) noexcept {
  heap.handed_out = false;
  set_my_heap(nullptr);  // R2: before the heap is published
}

}  // namespace

bool thread_has_ended() noexcept { return ended; }

// Runs as one of the destructors of thread-specific data.  The thread may have parted from the heap that the C library knows
// of, and another may have it now.
void detach(void*) noexcept {
  ended = true;
  if (!have_heap()) return;
  ThreadHeap& heap = my_thread_heap();
  HeapUse::begin(heap);  // R3: and it stays in use
  let_go(heap);
  registry.publish(heap, false);
}

// The end of the thread is still watched.
void Registry::part() noexcept {
  if (!have_heap()) return;
  ThreadHeap& heap = my_thread_heap();
  HeapUse::begin(heap);  // R3
  heap.drain();
  heap.purge_slots();
  let_go(heap);
  publish(heap, true);
}

ThreadHeap* Registry::create() noexcept {
  link_start();
  ThreadHeap* heap = ThreadHeap::create();
  if (heap == nullptr) return nullptr;
  superblock_pool.add(heap->shelf);
  LockGuard guard(lock_);
  heap->id = count_++;
  set_live(*heap, true);
  heap->next = heaps_;
  keep_order();
  heaps_ = heap;
  return heap;
}

ThreadHeap* Registry::pop_dead() noexcept {
  LockGuard guard(lock_);
  ThreadHeap* heap = dead_;
  if (heap != nullptr) {
    dead_ = heap->next_dead;
    set_live(*heap, true);
  }
  return heap;
}

// Under the lock.  A stranded heap is not counted, even if it turns out that a thread of the child has it.
void Registry::set_live(ThreadHeap& heap, bool live) noexcept {
  if (!heap.shelf.stranded) live_ += static_cast<uint32_t>(live) - static_cast<uint32_t>(heap.live);
  heap.live = live;
  footprint.set_heaps(live_);
}

// Behind the heaps that are still warm if it is drained: those are inherited first.
void Registry::publish(ThreadHeap& heap, bool drained) noexcept {
  LockGuard guard(lock_);
  set_live(heap, false);
  heap.aged = heap.due = false;
  heap.drained = drained;
  if (heap.shelf.stranded) heap.shelf.stranded = false;  // a child's repair cannot know which of its threads has it
  ThreadHeap** link = &dead_;
  while (drained && *link != nullptr && !(*link)->drained) link = &(*link)->next_dead;
  heap.next_dead = *link;
  keep_order();
  *link = &heap;
}

// The dead heap's last writes happened before publish released the lock that pop_dead acquired.
ThreadHeap* Registry::attach() noexcept {
  os::page_size();  // its first call asks libc: before anything is being changed (A)
  if (have_heap()) return &my_thread_heap();
  ThreadHeap* heap = pop_dead();
  if (heap == nullptr) heap = create();
  if (heap == nullptr) return nullptr;
  set_my_heap(heap);
  thread_exit.watch(heap);  // may call malloc
  HeapUse::end(*heap);
  return heap;
}

bool Registry::is_due(ThreadHeap& heap, Drain which) noexcept {
  return !heap.drained && (which == Drain::kAll || std::exchange(heap.aged, true));
}

ThreadHeap* Registry::take_due() noexcept {
  LockGuard guard(lock_);
  for (ThreadHeap** link = &dead_; *link != nullptr; link = &(*link)->next_dead) {
    ThreadHeap* heap = *link;
    if (!heap->due) continue;
    heap->due = false;
    *link = heap->next_dead;
    return heap;
  }
  return nullptr;
}

// Only one heap at a time is in no list, because the child of a fork would strand it.
void Registry::drain_dead(Drain which) noexcept {
  {
    LockGuard guard(lock_);
    for (ThreadHeap* heap = dead_; heap != nullptr; heap = heap->next_dead) heap->due = is_due(*heap, which);
  }
  while (ThreadHeap* heap = take_due()) {
    heap->drain();
    publish(*heap, true);
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
  uint32_t live = 0;
  for (ThreadHeap* heap = heaps_; heap != nullptr; heap = heap->next) live += heap->live && !heap->shelf.stranded;
  return live == live_;
}

// For each lock, what it guards is now either whole or being changed by this very thread, whose interrupted code goes
// on.  The registry's own lists are complete after every instruction (R1).
void Registry::repair(uint32_t before) noexcept {
  repair_after_fork(lock_, before, [] {});
  repair_after_fork(fallback_lock_, before, [this] { fallback_ = nullptr; });
  superblock_pool.repair(before);
  claims.repair(before);
  repair_after_fork(huge_lock(), before, huge_repair);
  huge_forget_promises();
  slice_pool.repair(before);
  strand_heaps();
}

// Other threads' heaps were left in the middle of a change: they stay readable, so that their blocks can be freed, but are
// never used again.  Only this thread's heap, the fallback (dropped if another thread used it) and dead heaps are whole.
void Registry::strand_heaps() noexcept {
  for (ThreadHeap* heap = heaps_; heap != nullptr; heap = heap->next)
    heap->shelf.stranded = heap->shelf.stranded || (heap != my_heap() && heap != fallback_);
  for (ThreadHeap* heap = dead_; heap != nullptr; heap = heap->next_dead) heap->shelf.stranded = false;
  live_ = 0;
  for (ThreadHeap* heap = heaps_; heap != nullptr; heap = heap->next) live_ += heap->live && !heap->shelf.stranded;
  footprint.set_heaps(live_);
}

}  // namespace hm

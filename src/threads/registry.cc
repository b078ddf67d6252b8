#include "threads/registry.h"

#include <utility>

#include "base/intrusive_list.h"
#include "base/os_pages.h"
#include "base/thread_exit.h"
#include "core/superblock_pool.h"
#include "large/huge.h"
#include "pages/footprint.h"
#include "pages/slice_pool.h"
#include "threads/own_heaps.h"

namespace hm {

constinit Registry registry;

namespace {

constinit thread_local bool ended = false;
constinit ThreadExit thread_exit(detach);

void let_go(ThreadHeap& heap) noexcept {
  heap.handed_out = false;
  heap.belongs_to(0);
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
  let_go(heap);
  heap.purge_slots();
  publish(heap, true);
}

ThreadHeap* Registry::create(bool live) noexcept {
  link_start();
  ThreadHeap* heap = ThreadHeap::create();
  if (heap == nullptr) return nullptr;
  superblock_pool.add(heap->shelf);
  LockGuard guard(lock_);
  if (counting.is_prepared()) heap->open_countdowns();
  heap->id = count_++;
  set_live(*heap, live);
  heap->next = heaps_;
  keep_order();
  heaps_ = heap;
  return heap;
}

void Registry::unlink_warm(ThreadHeap& heap) noexcept {
  if (last_warm_ == &heap) last_warm_ = heap.previous_dead;
  unlink(warm_, heap, &ThreadHeap::next_dead, &ThreadHeap::previous_dead);
}

// The newest, whose lines and pages are the likeliest to be warm.
ThreadHeap* Registry::pop_dead() noexcept {
  LockGuard guard(lock_);
  ThreadHeap* heap = warm_ != nullptr ? warm_ : drained_;
  if (heap == nullptr) return nullptr;
  if (heap == warm_) unlink_warm(*heap);
  else drained_ = heap->next_dead;
  if (counting.is_prepared()) heap->open_countdowns();  // the page may have been purged
  set_live(*heap, true);
  return heap;
}

// Under the lock.  A stranded heap is not counted, even if it turns out that a thread of the child has it.
void Registry::set_live(ThreadHeap& heap, bool live) noexcept {
  if (!heap.shelf.stranded) live_ += static_cast<uint32_t>(live) - static_cast<uint32_t>(heap.live);
  heap.live = live;
  footprint.set_heaps(live_);
}

void Registry::publish(ThreadHeap& heap, bool drained) noexcept {
  LockGuard guard(lock_);
  set_live(heap, false);
  heap.aged = heap.due = false;
  heap.drained = drained;
  if (heap.shelf.stranded) heap.shelf.stranded = false;  // a child's repair cannot know which of its threads has it
  if (!drained && warm_ == nullptr) last_warm_ = &heap;
  link_first(drained ? drained_ : warm_, heap, &ThreadHeap::next_dead, &ThreadHeap::previous_dead);
}

// The dead heap's last writes happened before publish released the lock that pop_dead acquired.
ThreadHeap* Registry::attach() noexcept {
  os::page_size();  // its first call asks libc: before anything is being changed (A)
  if (have_heap()) return &my_thread_heap();
  ThreadHeap* heap = pop_dead();
  if (heap == nullptr) heap = create(true);
  if (heap == nullptr) return nullptr;
  set_my_heap(heap);
  heap->belongs_to(my_thread_id());
  thread_exit.watch(heap);  // may call malloc
  HeapUse::end(*heap);
  return heap;
}

bool Registry::is_due(ThreadHeap& heap, Drain which) noexcept {
  return which == Drain::kAll || std::exchange(heap.aged, true);
}

// What is due is the oldest: the end of the list, after every instruction.
ThreadHeap* Registry::take_due() noexcept {
  LockGuard guard(lock_);
  ThreadHeap* heap = last_warm_;
  if (heap == nullptr || !heap->due) return nullptr;
  unlink_warm(*heap);
  heap->due = false;
  return heap;
}

// Only one heap at a time is in no list, because the child of a fork would strand it.  What another thread has found due
// stays so.
void Registry::drain_dead(Drain which) noexcept {
  {
    LockGuard guard(lock_);
    for (ThreadHeap* heap = last_warm_; heap != nullptr; heap = heap->previous_dead) heap->due |= is_due(*heap, which);
  }
  while (ThreadHeap* heap = take_due()) {
    heap->drain();
    heap->purge_slots();
    publish(*heap, true);
  }
}

void Registry::drain_fallback() noexcept {
  LockGuard guard(fallback_lock_);
  if (fallback_ != nullptr) fallback_->drain();
}

bool Registry::is_valid() noexcept {
  LockGuard guard(lock_);
  bool ordered = true;  // warm heaps: what is due comes last
  const ThreadHeap* previous = nullptr;
  for (ThreadHeap* heap = warm_; heap != nullptr; previous = heap, heap = heap->next_dead)
    ordered =
        ordered && !heap->drained && heap->previous_dead == previous && (previous == nullptr || !previous->due || heap->due);
  if (!ordered || last_warm_ != previous) return false;
  for (ThreadHeap* list : {warm_, drained_})
    for (ThreadHeap* heap = list; heap != nullptr; heap = heap->next_dead)
      if (heap->live || heap->shelf.stranded || heap->drained != (list == drained_) || !heap->is_valid()) return false;
  uint32_t live = 0;
  for (ThreadHeap* heap = heaps_; heap != nullptr; heap = heap->next) live += heap->live && !heap->shelf.stranded;
  return live == live_;
}

// For each lock, what it guards is now either whole or being changed by this very thread, whose interrupted code goes
// on.  The registry's own lists are complete after every instruction (R1); the ways back are not.
void Registry::repair(uint32_t before) noexcept {
  repair_after_fork(lock_, before, [this] { relink_warm(); });
  repair_after_fork(fallback_lock_, before, [this] { fallback_ = nullptr; });
  superblock_pool.repair(before);
  claims.repair(before);
  own_heaps.repair(before);
  repair_after_fork(huge_lock(), before, huge_repair);
  huge_forget_promises();
  slice_pool.repair(before);
  strand_heaps();
  if (have_heap()) my_thread_heap().belongs_to(my_thread_id());
}

void Registry::relink_warm() noexcept {
  last_warm_ = nullptr;
  for (ThreadHeap* heap = warm_; heap != nullptr; heap = heap->next_dead)
    heap->previous_dead = std::exchange(last_warm_, heap);
}

// Other threads' heaps were left in the middle of a change: they stay readable, so that their blocks can be freed, but are
// never used again.  Only this thread's heap, the fallback (dropped if another thread used it) and dead heaps are whole.
void Registry::strand_heaps() noexcept {
  for (ThreadHeap* heap = heaps_; heap != nullptr; heap = heap->next)
    heap->shelf.stranded = heap->shelf.stranded || (heap != my_heap() && heap != fallback_);
  for (ThreadHeap* list : {warm_, drained_})
    for (ThreadHeap* heap = list; heap != nullptr; heap = heap->next_dead) heap->shelf.stranded = false;
  live_ = 0;
  for (ThreadHeap* heap = heaps_; heap != nullptr; heap = heap->next) live_ += heap->live && !heap->shelf.stranded;
  footprint.set_heaps(live_);
}

}  // namespace hm

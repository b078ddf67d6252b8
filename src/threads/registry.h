// All thread heaps: which thread uses which, and what happens when a thread ends or idles, and in the child of a fork.
//
// Invariants
//  R1  A heap is live (one thread's my_heap points to it), dead (in a list of heaps without a thread: warm ones, as their
//      threads left them, or drained ones), being drained (in none), or stranded (its thread did not survive a fork; never
//      used, drained or freed again).  Each list is complete after every instruction.
//  R2  A thread's my_heap is cleared before its heap is published as dead: a late destructor that allocates finds no
//      heap and is served by the fallback, never by a heap that another thread has inherited.  A thread that goes idle
//      loses its heap in the same way, and finds that it has none when it allocates again.
//  R3  A heap that no thread's my_heap points to is in use (H4).
#pragma once
#include "base/lock.h"
#include "threads/claims.h"

namespace hm {

class Registry {
 public:
  // Gives the calling thread a heap.  Null if there is no memory.
  ThreadHeap* attach() noexcept;
  // Drains the calling thread's heap, if it has one, and takes it away: another thread may have it.
  void part() noexcept;
  // For threads whose heap is already gone (late destructors): calls visit(heap) under a lock.
  template <class Visit>
  void* with_fallback(Visit visit) noexcept {
    LockGuard guard(fallback_lock_);
    if (fallback_ == nullptr) fallback_ = create(false);
    return fallback_ == nullptr ? nullptr : visit(*fallback_);
  }
  // Drains heaps without a thread: everything goes to the pool and to chunks.
  enum class Drain : uint8_t {
    kAged,  // those that were dead at the last call already: a successor may want newer ones as they are
    kAll,
  };
  void drain_dead(Drain which) noexcept;
  bool has_warm() noexcept {  // heaps that are still to be drained
    LockGuard guard(lock_);
    return warm_ != nullptr;
  }
  // The same for the fallback heap, which threads share.
  void drain_fallback() noexcept;

  template <class Visit>
  void for_each(Visit visit) noexcept {
    LockGuard guard(lock_);
    for (ThreadHeap* heap = heaps_; heap != nullptr; heap = heap->next) visit(*heap);
  }
  ThreadHeap* newest() noexcept {  // and from there on, by next, all others: they stay forever
    LockGuard guard(lock_);
    return heaps_;
  }
  bool is_live(const ThreadHeap& heap) noexcept {  // whether a thread has it
    LockGuard guard(lock_);
    return heap.live;
  }
  bool is_valid() noexcept;

  // In the child of a fork: repairs all that the allocator shares between threads (base/process.h).
  void repair(uint32_t before) noexcept;

 private:
  friend struct Layout;
  friend void detach(void* heap) noexcept;
  ThreadHeap* create(bool live) noexcept;
  ThreadHeap* pop_dead() noexcept;
  void unlink_warm(ThreadHeap& heap) noexcept;
  void relink_warm() noexcept;
  static bool is_due(ThreadHeap& heap, Drain which) noexcept;
  ThreadHeap* take_due() noexcept;
  void publish(ThreadHeap& heap, bool drained) noexcept;
  void set_live(ThreadHeap& heap, bool live) noexcept;
  void strand_heaps() noexcept;

  Lock lock_;
  Lock fallback_lock_;
  ThreadHeap* heaps_ = nullptr;
  ThreadHeap* warm_ = nullptr;       // dead, the newest first
  ThreadHeap* last_warm_ = nullptr;  // the oldest
  ThreadHeap* drained_ = nullptr;    // dead, and empty
  ThreadHeap* fallback_ = nullptr;
  uint32_t count_ = 0;
  uint32_t live_ = 0;
};
extern Registry registry;
// Called at the end of a thread that has, or had, a heap.
void detach(void* heap) noexcept;

// Does nothing; a call of it makes a static link pull start.o, with the library's constructor, out of the archive.
void link_start() noexcept;
// True once this thread's heap is gone for good.
bool thread_has_ended() noexcept;
// The calling thread's heap, attached if it has none yet.  Null if the thread has ended or there is no memory.
inline ThreadHeap* heap_or_attach() noexcept {
  if (HM_LIKELY(have_heap())) return &my_thread_heap();
  return thread_has_ended() ? nullptr : registry.attach();
}

}  // namespace hm

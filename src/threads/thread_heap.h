// A thread's heap: its small blocks, and what it keeps of other kinds of blocks.  One thread uses it at a time; when
// that thread ends, another inherits the whole heap.
#pragma once
#include "core/quarantine.h"
#include "core/small_heap.h"
#include "large/runs.h"

namespace hm {

struct ThreadHeap;

// Lies in front of the small heap, because the entries of the small heap's caches lie behind that.
struct HeapFront {
  LargeCache large;
  uint64_t tick_ms = 0;   // when the last tick was
  uint64_t round_ms = 0;  // when its last round ended

  // ---- registry, under its lock
  ThreadHeap* next = nullptr;       // all heaps
  ThreadHeap* next_dead = nullptr;  // heaps without a thread, warm or drained
  ThreadHeap* previous_dead = nullptr;
  uint32_t id = 0;
  bool live = false;
  bool drained = true;  // dead and empty
  bool aged = false;    // dead since before the process's last round
  bool due = false;     // dead, and to be drained

  BlockCache none = SmallHeap::no_cache();  // the last: in front of the caches (hmalloc_local.h)
};

struct ThreadHeap : HeapFront, SmallHeap {
  static ThreadHeap* create() noexcept;  // null if there is no memory

  struct Tick {
    uint64_t now_ms;
    bool shrinking;  // the process shrinks, and a class of this heap is idle or its blocks are being freed for good
    bool round;      // of the heap: a quarter of the decay time is over
  };
  Tick act_on_tick() noexcept;
  // Gives back all that nobody needs: caches, current and full superblocks and large runs, to chunks and pool.
  void drain() noexcept;
  // Of a heap that was drained: the slots of its caches hold nothing that a page of zeros would not say.
  void purge_slots() noexcept;
  // Of the hardened library alone; it lies behind the slots.
  Quarantine& quarantine() noexcept;
};

// The heap of the calling thread, which must have one.
inline ThreadHeap& my_thread_heap() noexcept { return *static_cast<ThreadHeap*>(my_heap()); }

}  // namespace hm

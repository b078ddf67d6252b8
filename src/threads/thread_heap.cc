#include "threads/thread_heap.h"

#include <new>

#include "base/clock.h"
#include "base/os_pages.h"
#include "pages/options.h"

namespace hm {

static_assert(sizeof(ThreadHeap) <= 4 * kKiB, "a heap is a page, which a thread that allocates once pays for");
static_assert(sizeof(ThreadHeap) == sizeof(HeapFront) + sizeof(SmallHeap), "the slots lie behind");
static_assert(offsetof(HeapFront, none) + kCacheStride == sizeof(HeapFront));
static_assert((sizeof(HeapFront) + offsetof(SmallHeap, shelf)) % (4 * kKiB) != 0, "or half of its address could be zero");
// Each malloc and free stores the top of a cache, and the next free loads the head of a descriptor.  Where the two have the
// same offset in a page a pair of calls takes 10 ns in place of 6 (docs/decisions.md), so tops lie at the offset of what
// follows a descriptor's head, which no free on the fast path reads.
static_assert(sizeof(HeapFront) % kCacheStride == sizeof(DescriptorHead) && sizeof(Slice) % kCacheStride == 0);

ThreadHeap* ThreadHeap::create() noexcept {
  void* memory = os::map_guarded(sizeof(ThreadHeap) + kBytesBehind + (kHardened ? sizeof(Quarantine) : 0));
  if (memory == nullptr) return nullptr;
  auto* heap = new (memory) ThreadHeap;
  heap->tick_ms = heap->round_ms = os::now_ms();
  return heap;
}

ThreadHeap::Tick ThreadHeap::act_on_tick() noexcept {
  Tick tick{0, on_tick(), false};
  large.tick();
  tick.now_ms = tick_ms = os::now_ms();
  tick.round = tick.now_ms - round_ms >= options.decay_ms / 4;
  if (tick.round) {
    round_ms = tick.now_ms;
    on_round();
    if (kHardened && !quarantine().was_used()) quarantine().release_all();
  }
  return tick;
}

Quarantine& ThreadHeap::quarantine() noexcept {
  static_assert(alignof(Quarantine) <= alignof(void*));
  return *reinterpret_cast<Quarantine*>(reinterpret_cast<char*>(this + 1) + kBytesBehind);
}

void ThreadHeap::drain() noexcept {
  if (kHardened) quarantine().release_all();
  release_all();
  large.release_all();
}

void ThreadHeap::purge_slots() noexcept {
  uintptr_t from = align_up(address_of(this + 1), os::page_size());
  uintptr_t to = align_down(address_of(this + 1) + kBytesBehind, os::page_size());
  if (from < to) os::purge(reinterpret_cast<void*>(from), to - from);
}

}  // namespace hm

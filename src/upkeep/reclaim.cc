#include "upkeep/reclaim.h"

#include <algorithm>
#include <atomic>

#include "base/clock.h"
#include "core/superblock_pool.h"
#include "large/huge.h"
#include "pages/footprint.h"
#include "pages/options.h"
#include "pages/slice_pool.h"
#include "profile/sampler.h"
#include "threads/own_heaps.h"
#include "threads/registry.h"
#include "upkeep/background.h"
#include "upkeep/hole_passes.h"
#include "upkeep/pressure.h"

namespace hm {

constinit Background background(background_round);
constinit Pressure pressure(reclaim_all);

namespace {

// For each class of each shard of the pool; bounds the pause to about a millisecond.
constexpr size_t kProbesPerRound = 1024 / SuperblockPool::kShards;

constexpr uint64_t kShortestPause = 100;  // ms

std::atomic<uint64_t> last_round_ms{0};
// By any heap; 0: none has looked yet.  Relaxed: one thread takes each pause, and nothing else depends on it.
std::atomic<uint64_t> last_look_ms{0};
std::atomic<size_t> slices_at_look{0};  // relaxed: whichever thread without a heap looks next may use it

void purge(bool all) noexcept {
  slice_pool.purge(all ? SlicePool::Purge::kAll : SlicePool::Purge::kDue);
  footprint.count_purged(purge_huge_blocks(all));
}

}  // namespace

// A round of the process takes half a decay time, and a slice goes back in the second round after its free: after half to one
// decay time.
void reclaim_due(uint64_t now_ms) noexcept {
  uint64_t last = last_round_ms.load(std::memory_order_relaxed);
  if (now_ms < last || now_ms - last < options.decay_ms / 2) return;  // another thread may have read the clock later
  // One thread per round; the others continue.
  if (!last_round_ms.compare_exchange_strong(last, now_ms, std::memory_order_relaxed)) return;
  registry.drain_dead(Registry::Drain::kAged);
  superblock_pool.release_free(kProbesPerRound);
  purge(false);
}

namespace {

void react(bool shrinking) noexcept {
  if (shrinking) registry.drain_dead(Registry::Drain::kAged);
}

// The thread that comes first after a pause of all gives holes back, because nobody could do it during the pause.  What
// it takes for that is no pause.
void look_for_pause() noexcept {
  uint64_t now_ms = os::now_ms(), last = last_look_ms.load(std::memory_order_relaxed);
  if (now_ms <= last) return;  // another thread has looked meanwhile, at a later time perhaps
  if (!last_look_ms.compare_exchange_strong(last, now_ms, std::memory_order_relaxed)) return;
  if (last == 0 || now_ms - last < std::max<uint64_t>(options.decay_ms, kShortestPause)) return;
  hole_passes.after_pause(now_ms - last);
  last_look_ms.store(os::now_ms(), std::memory_order_relaxed);
}

}  // namespace

void upkeep(ThreadHeap& heap) noexcept {
  HeapUse use(heap);
  background.on_look();
  sampler.look_for_tracer();
  look_for_pause();
  pressure.look(&heap);
  bool late = os::recent_ms() > heap.tick_ms + options.decay_ms / 4;
  if (!heap.on_look() && !late) return;
  ThreadHeap::Tick tick = heap.act_on_tick();
  react(tick.shrinking);
  if (tick.round) reclaim_due(tick.now_ms);
}

void upkeep_without_heap() noexcept {
  background.on_look();
  sampler.look_for_tracer();
  size_t now = slice_pool.used(), before = slices_at_look.exchange(now, std::memory_order_relaxed);
  react(now + kSlicesToShrink <= before);
  reclaim_due(os::now_ms());
}

void look_without_heap() noexcept {
  background.on_look();
  sampler.look_for_tracer();
  reclaim_due(os::now_ms());
}

bool background_round() noexcept {
  sampler.look_for_tracer();
  uint64_t before = footprint.purged();
  registry.drain_dead(Registry::Drain::kAged);
  superblock_pool.release_shelved();
  superblock_pool.release_free(SIZE_MAX);
  uint64_t now_ms = os::now_ms(), pause_ms = std::max<uint64_t>(options.decay_ms / 2, 1);
  if (now_ms >= last_look_ms.load(std::memory_order_relaxed) + pause_ms) hole_passes.after_pause(pause_ms);
  last_round_ms.store(os::now_ms(), std::memory_order_relaxed);
  purge(false);
  bool waiting = slice_pool.has_surplus() || huge_gauges().kept > 0 || registry.has_warm();
  return footprint.purged() != before || waiting;
}

bool reclaim_all() noexcept {
  uint64_t before = footprint.purged();
  claims.look(registry.newest());
  if (have_heap()) {
    HeapUse use(my_thread_heap());
    my_thread_heap().drain();
  }
  registry.drain_dead(Registry::Drain::kAll);
  registry.drain_fallback();
  claims.collect(registry.newest());
  own_heaps.for_each([](OwnHeap& heap) { heap.release_empty(); });
  superblock_pool.release_shelved();
  superblock_pool.release_free(SIZE_MAX);
  hole_passes.whole();
  purge(true);
  return footprint.purged() != before;
}

void reclaim_before_refusal() noexcept {
  reclaim_all();
  slice_pool.unmap_closed();
  unmap_behind_huge_blocks();
}

}  // namespace hm

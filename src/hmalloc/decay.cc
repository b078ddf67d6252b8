#include "hmalloc/decay.h"

#include <atomic>

#include "hmalloc/options.h"
#include "base/os_pages.h"
#include "hmalloc/huge.h"
#include "hmalloc/registry.h"
#include "hmalloc/scavenger.h"
#include "hmalloc/slice_pool.h"
#include "hmalloc/superblock_pool.h"

namespace hm {

constinit Scavenger scavenger(scavenge);

namespace {

// Of each class's pool, in each shard: bounds the pause to about a millisecond.
constexpr size_t kChunksWorthScavenging = 8;
constexpr size_t kLooksPerRound = 1024 / SuperblockPool::kShards;

std::atomic<uint64_t> last_round_ms{0};
std::atomic<uint64_t> purged{0};

size_t give_back(bool all, size_t local) noexcept {
  size_t bytes = local + slice_pool.purge(all) + purge_huge_blocks(all);
  purged.fetch_add(bytes, std::memory_order_relaxed);
  return bytes;
}

}  // namespace

// Half a decay time a round, and two rounds for a slice: it goes back after half to one decay time.
void decay(uint64_t now_ms, size_t bytes) noexcept {
  if (bytes > 0) purged.fetch_add(bytes, std::memory_order_relaxed);
  uint64_t last = last_round_ms.load(std::memory_order_relaxed);
  if (now_ms - last < options.decay_ms / 2) return;
  // One thread per round; the others go on.
  if (!last_round_ms.compare_exchange_strong(last, now_ms, std::memory_order_relaxed)) return;
  size_t local = registry.drain_dead(false);
  superblock_pool.release_free(kLooksPerRound);
  give_back(false, local);
}

void look_after(ThreadHeap& heap) noexcept {
  ThreadHeap::Tick tick = heap.act_on_tick();
  if (tick.shrinking && slice_pool.chunks() >= kChunksWorthScavenging) scavenger.wake();
  if (tick.round) decay(tick.now_ms, tick.purged);
}

bool scavenge() noexcept {
  size_t local = registry.drain_dead(false);
  superblock_pool.release_shelved();
  superblock_pool.release_free(SIZE_MAX);
  last_round_ms.store(os::now_ms(), std::memory_order_relaxed);
  return give_back(false, local) > 0;
}

bool collect() noexcept {
  size_t local = have_heap() ? my_heap()->drain() : 0;
  local += registry.drain_dead(true) + registry.drain_fallback();
  superblock_pool.release_shelved();
  superblock_pool.release_free(SIZE_MAX);
  return give_back(true, local) > 0;
}

uint64_t purged_bytes() noexcept { return purged.load(std::memory_order_relaxed); }

}  // namespace hm

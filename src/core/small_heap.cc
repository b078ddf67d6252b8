#include "core/small_heap.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/process.h"
#include "base/report.h"
#include "core/description.h"
#include "pages/cache_budget.h"

namespace {

static_assert(offsetof(hm::SmallHeap, caches) == 0 && sizeof(hm::SmallHeap) <= hm::Countdown::kDistance &&
              HM_LOCAL_STRIDE_ == hm::kCacheStride);

consteval hm_local_table_ local_offsets() {
  hm_local_table_ offsets{};
  for (size_t i = 0; i < std::size(offsets.by_granules); ++i)
    offsets.by_granules[i] = hm::kCacheOffset[i] + hm::kCacheStride;
  return offsets;
}

}  // namespace

__thread char* hm_local_caches_ = nullptr;
constinit const hm_local_table_ hm_local_offsets_ = local_offsets();

namespace hm {
namespace {

constexpr size_t kOwnProbes = 4;
// So many blocks may become FREE on the fast path before they are counted.
constexpr uint32_t direct_batch(ClassIndex c) {
  return static_cast<uint32_t>(std::min<size_t>(kOperationsPerTick, 64 * kKiB / size_of(c)));
}
constexpr uint32_t kTicksToJudge = 4;  // ticks before a cache can be called too large

// Where the entries of each class's cache lie behind the heap.  Near slots are close together, so that a thread that
// uses a little of many classes touches few pages; wide slots are for caches that have grown.
struct Slots {
  // One more for the slot below the first entry.  A refill may bring more than the cache may hold.
  static constexpr size_t with(size_t entries, size_t c) {
    size_t most = std::min(CacheTuner::kMostWanted + sweep_surplus(ClassIndex(c)), blocks_of(ClassIndex(c)));
    return 1 + std::max(entries, most);
  }
  consteval Slots() {
    for (size_t c = 0; c < kClasses; ++c) near[c + 1] = near[c] + with(CacheTuner::first_capacity(c), c);
    wide[0] = near[kClasses];
    for (size_t c = 0; c < kClasses; ++c) wide[c + 1] = wide[c] + with(CacheTuner::max_capacity(c), c);
  }
  size_t near[kClasses + 1] = {};
  size_t wide[kClasses + 1] = {};
};
constexpr Slots kSlots;

template <size_t... I>
consteval std::array<BlockCache, kClasses> empty_caches(std::index_sequence<I...>) {
  return {((void)I, BlockCache(&no_blocks))...};
}

}  // namespace

// Lines of their own: threads without a heap read the first in each free.
alignas(kLine) constinit void* no_blocks = nullptr;
alignas(kLine) constinit void* no_counted_blocks = nullptr;
alignas(kLine) constinit EmptyHeap empty_heap = {empty_caches(std::make_index_sequence<kClasses>{}),
                                                 kSharedCacheOffset,
                                                 {},
                                                 empty_caches(std::make_index_sequence<kClasses>{}),
                                                 kCacheOffset};
constinit thread_local ptrdiff_t heap_offset = 0;

const size_t SmallHeap::kBytesBehind = static_cast<size_t>(Countdown::kDistance) - sizeof(SmallHeap) +
                                       kClasses * sizeof(Countdown) + kSlots.wide[kClasses] * sizeof(void*);

BlockCache SmallHeap::no_cache() noexcept { return BlockCache(&no_blocks); }

SmallHeap::SmallHeap() noexcept {
  for (BlockCache& cache : caches) new (&cache) BlockCache(&no_blocks);
  restart_tick();
}

BlockRef find_block(void* block) noexcept {
  Superblock& sb = Superblock::of(address_of(block));
  return {sb, sb.states[BlockPlace(sb, address_of(block)).index()]};
}

void** SmallHeap::near_slots(size_t c) const noexcept {
  return reinterpret_cast<void**>(first_countdown() + kClasses) + kSlots.near[c];
}
void** SmallHeap::wide_slots(size_t c) const noexcept { return near_slots(0) + kSlots.wide[c]; }

// Where the slots begin that a slot belongs to; null: of a class that is not active yet.
void** SmallHeap::slots_around(size_t c, void** slot) const noexcept {
  if (near_slots(c) <= slot && slot < near_slots(c + 1)) return near_slots(c);
  if (wide_slots(c) <= slot && slot < wide_slots(c + 1)) return wide_slots(c);
  return nullptr;
}

// Judged by where its top points, because the cache may be moved meanwhile.
size_t SmallHeap::cached_blocks(size_t c) const noexcept {
  void **bottom = caches[c].bottom(), **top = caches[c].top(), **slots = slots_around(c, top);
  if (slots == nullptr) return 0;
  return static_cast<size_t>(top - (slots <= bottom && bottom <= top ? bottom : slots));
}

// They go back to where they begin: those that were emptied now begin where the last of the entries lay.
void SmallHeap::open_caches() noexcept {
  for (size_t c = 0; c < kClasses; ++c) {
    void** slots = slots_around(c, caches[c].bottom());
    if (slots == nullptr) continue;
    caches[c].move_to(slots);
    caches[c].set_limit(classes[c].tuner.capacity());
  }
}

size_t SmallHeap::first_capacity(ClassIndex c) noexcept {
  size_t share = std::max<size_t>(cache_budget() / kClasses / size_of(c), 1);
  return std::min({CacheTuner::first_capacity(index_of(c)), options.cache_blocks, share});
}

void SmallHeap::set_capacity(ClassIndex c, size_t entries) noexcept {
  CacheTuner& tuner = classes[index_of(c)].tuner;
  BlockCache& cache = caches[index_of(c)];
  capacity_bytes += static_cast<uint32_t>((entries - tuner.capacity()) * size_of(c));
  uint64_t bit = uint64_t{1} << index_of(c);
  active = entries != 0 ? active | bit : active & ~bit;
  tuner.set_capacity(entries);
  bool near = cache.bottom() == near_slots(index_of(c));
  if (near && entries > CacheTuner::first_capacity(index_of(c))) cache.move_to(wide_slots(index_of(c)));
  cache.set_limit(entries);
}

// For a class that was not in use: the cache is empty.
void SmallHeap::activate(ClassIndex c) noexcept {
  caches[index_of(c)].move_to(near_slots(index_of(c)));
  size_t budget = cache_budget(), left = budget - std::min<size_t>(budget, capacity_bytes);
  set_capacity(c, std::min(first_capacity(c), std::max<size_t>(left / size_of(c), 1)));
}

// At the first overflow after refills.
void SmallHeap::grow_if_too_small(ClassIndex c) noexcept {
  ClassState& state = classes[index_of(c)];
  state.full_searched = false;
  state.search.on_frees();
  size_t now = state.tuner.capacity(), wanted = state.tuner.on_overflow_after_refills(c);
  wanted = std::min(wanted, options.cache_blocks);
  if (wanted > now && capacity_bytes + (wanted - now) * size_of(c) <= cache_budget()) set_capacity(c, wanted);
}

// What became FREE on the fast path is told to others, and counts for the tick, in batches.
void SmallHeap::count_direct_frees(ClassIndex c) noexcept {
  BlockCache& cache = caches[index_of(c)];
  if (!cache.frees_directly()) return;
  uint32_t blocks = direct_batch(c) - cache.direct_frees_left();
  shelf.made_free.add(blocks * size_of(c));
  count_operations(blocks);
  cache.free_directly(&shelf, direct_batch(c));
}

void* SmallHeap::refill(ClassIndex c) noexcept {
  ClassState& state = classes[index_of(c)];
  BlockCache& cache = caches[index_of(c)];
  bool first = state.tuner.capacity() == 0;
  if (first) activate(c);
  size_t want = state.tuner.wanted(c);
  for (;;) {
    if (state.current == nullptr) {
      state.current = next_superblock(c);
      if (state.current == nullptr) return nullptr;
      state.current->begin_sweep(&shelf);
    }
    // A structure that one thread builds and reads comes in lines and pages one after another, as it will be read.  The
    // first blocks of a class may yet be given to threads that are still to come, each to write its own.
    bool alone = state.tuner.builds() && has_one_thread();
    size_t got = state.current->sweep(cache.top() + 1, want, alone);
    if (state.current->cursor >= state.current->blocks) {
      shelve(c, *state.current);
      state.current = nullptr;
    } else if (first) {  // a thread's first refill of a class often is its last: others may use the rest
      shelf.made_free.add(state.current->bytes());
      superblock_pool.push_front(*state.current);
      state.current = nullptr;
      first = false;
    }
    if (got > 0) {
      refills.add(1);
      state.tuner.on_refill(got);
      cache.set_top(cache.top() + got);
      count_direct_frees(c);
      cache.free_directly(nullptr, 0);
      return cache.pop();
    }
  }
}

// Takes the heap's own superblocks first, for locality, then those of the pool, then new memory.  A producer class
// takes the oldest of several full superblocks: lines that have meanwhile left the other core's L1 cache come back
// faster.  Until it has that many, it takes from the pool only those that are nearly free, and otherwise new ones.
Superblock* SmallHeap::next_superblock(ClassIndex c) noexcept {
  ClassState& state = classes[index_of(c)];
  bool early = state.tuner.feeds_other_threads() && full(c).count() < kProducerReuseDistance;
  if (!early && !state.full_searched) {
    if (Superblock* sb = pop_usable(full(c), kOwnProbes, min_free_blocks(c), &shelf)) {
      if (full_count > 0) --full_count;
      return sb;
    }
    state.full_searched = true;
  }
  size_t least = early ? blocks_of(c) - blocks_of(c) / 8 : min_free_blocks(c);
  if (state.search.is_due()) {
    if (Superblock* sb = superblock_pool.acquire_near(c, &shelf, state.search.probes(), least)) {
      state.search.on_success();
      return sb;
    }
    state.search.on_failure();
  }
  return superblock_pool.fresh(c, &shelf);
}

void SmallHeap::shelve(ClassIndex c, Superblock& sb) noexcept {
  full(c).push(sb);
  bool for_others = classes[index_of(c)].tuner.feeds_other_threads();
  if (++full_count <= kMaxFull || (for_others && full(c).count() <= kProducerReuseDistance)) return;
  if (Superblock* oldest = full(c).pop()) superblock_pool.push(*oldest);
  --full_count;
}

// What the last refill of a long run brought beyond the capacity; of blocks smaller than a line it is little.
void SmallHeap::end_run(ClassIndex c) noexcept {
  size_t used = caches[index_of(c)].size(), capacity = classes[index_of(c)].tuner.capacity();
  if (size_of(c) >= kLine) flush(c, used - std::min(used, capacity));
}

// If the block is foreign, the older half of the cache is freed in one burst, so that a line of states moves between
// two threads once for many blocks.
void SmallHeap::overflow(void* block, Superblock& sb, BlockState& state) noexcept {
  ClassIndex c = sb.class_index();
  classes[index_of(c)].tuner.on_overflow();
  if (!caches[index_of(c)].frees_directly()) {
    grow_if_too_small(c);
    end_run(c);
    caches[index_of(c)].free_directly(&shelf, direct_batch(c));
  }
  count_direct_frees(c);
  if (sb.owner() != &shelf) flush(c, caches[index_of(c)].size() / 2 + 1);
  if constexpr (kChecked) state.mark_cached();
  if (caches[index_of(c)].push(block)) return;
  if (sb.owner() != &shelf) cross_thread_frees.add(1);
  shelf.made_free.add(size_of(c));
  give_back(sb, state);
}

// What a fast free does not look for: the program has freed a block twice, with others between, and both entries were in the
// cache until now.
[[noreturn]] HM_COLD void die_in_cache_twice(const void* block) noexcept {
  auto describe = [](const void* pointer) noexcept {
    if (Slice::of(address_of(pointer)).is_small())
      describe_small(pointer);  // with the first entry its superblock may have gone
  };
  die_on_misuse("free", block, "double free, found when the block left the thread's cache", describe);
}

void drop_oldest(BlockCache& cache, size_t blocks) noexcept {
  void** oldest = cache.bottom() + 1;
  move_slots(oldest, oldest + blocks, cache.size() - blocks);
  cache.set_top(cache.top() - blocks);
}

// The oldest `blocks` entries of a cache become FREE.
void SmallHeap::flush(ClassIndex c, size_t blocks) noexcept {
  BlockCache& cache = caches[index_of(c)];
  void** oldest = cache.bottom() + 1;
  blocks = std::min(blocks, cache.size());
  if (blocks == 0) return;
  uint64_t foreign = 0;
  for (size_t i = 0; i < blocks; ++i) {
    void* block = oldest[i];
    BlockRef ref = find_block(block);
    foreign += ref.sb.owner() != &shelf;
    if (HM_UNLIKELY(ref.state.is_free())) drop_oldest(cache, i + 1), die_in_cache_twice(block);
    give_back(ref.sb, ref.state);  // the last access to this block's superblock
  }
  drop_oldest(cache, blocks);
  flushes.add(1);
  cross_thread_frees.add(foreign);
  shelf.made_free.add(blocks * size_of(c));
}

bool SmallHeap::on_tick() noexcept {
  restart_tick();
  ++ticks_in_round;
  full_count = 0;
  bool less = slices_in_use() + kSlicesToShrink <= slices_at_tick, shrinking = false;
  slices_at_tick = most_slices = slices_in_use();
  bool too_much = capacity_bytes > cache_budget();  // there are more heaps than when the caches grew
  for (uint64_t left = active; left != 0; left &= left - 1) {
    auto c = static_cast<size_t>(std::countr_zero(left));
    ClassState& state = classes[c];
    count_direct_frees(ClassIndex(c));
    if (state.tuner.on_tick(caches[c].size(), caches[c].top_block(), less)) {
      release_idle(ClassIndex(c));
      shrinking = less;
    } else if (too_much) {
      cut(ClassIndex(c));
    }
    state.full_searched = false;
    state.search.on_frees();
    full_count += static_cast<uint32_t>(full(ClassIndex(c)).count());
  }
  return shrinking;
}

void SmallHeap::on_round() noexcept {
  for (size_t c = 0; c < kClasses; ++c) {
    classes[c].tuner.on_round();
    if (ticks_in_round >= kTicksToJudge) give_up_surplus(ClassIndex(c));
    release_free(full(ClassIndex(c)), SIZE_MAX);
  }
  if (ticks_in_round >= kTicksToJudge) ticks_in_round = 0;
}

void SmallHeap::cut(ClassIndex c) noexcept {
  size_t first = first_capacity(c), used = caches[index_of(c)].size();
  if (classes[index_of(c)].tuner.capacity() <= first) return;
  set_capacity(c, first);
  flush(c, used - std::min(used, first));
}

void SmallHeap::give_up_surplus(ClassIndex c) noexcept {
  CacheTuner& tuner = classes[index_of(c)].tuner;
  size_t surplus = tuner.take_surplus(), first = first_capacity(c);
  if (tuner.capacity() <= first || surplus == 0) return;
  surplus = std::min(surplus, tuner.capacity() - first);
  set_capacity(c, tuner.capacity() - surplus);
  flush(c, surplus);
}

// With a capacity of zero every free makes its block FREE until the next refill, so an idle cache pins no superblock.
void SmallHeap::release_idle(ClassIndex c) noexcept {
  count_direct_frees(c);
  flush(c, SIZE_MAX);
  set_capacity(c, 0);
  release_superblocks(c);
}

void SmallHeap::release_superblocks(ClassIndex c) noexcept {
  Superblock* current = std::exchange(classes[index_of(c)].current, nullptr);
  keep_order();  // a fork that cuts another thread off here loses it
  if (current != nullptr) {
    shelf.made_free.add(current->bytes());
    full(c).push(*current);
  }
  while (Superblock* sb = full(c).pop()) sb->is_empty() ? release(*sb) : superblock_pool.push(*sb);
}

void SmallHeap::release_all() noexcept {
  for (size_t c = 0; c < kClasses; ++c) release_idle(ClassIndex(c));
}

bool SmallHeap::is_valid() noexcept {
  for (size_t c = 0; c < kClasses; ++c) {
    ClassState& state = classes[c];
    if ((active >> c & 1) != (state.tuner.capacity() != 0)) return false;
    void** floor = caches[c].bottom();
    size_t used = caches[c].size();
    if (*floor != nullptr || used >= Slots::with(CacheTuner::max_capacity(c), c)) return false;
    for (size_t i = 1; i <= used; ++i) {  // H2
      if (AddressMap::kind(address_of(floor[i])) != ChunkKind::kSlices) return false;
      BlockRef ref = find_block(floor[i]);
      if (index_of(ref.sb.class_index()) != c || ref.state.is_free()) return false;
      if (!BlockPlace(ref.sb, address_of(floor[i])).exact()) return false;
    }
    if (state.current != nullptr && !state.current->is_valid()) return false;
    bool sound = true;
    full(ClassIndex(c)).for_each([&](Superblock& sb) { sound = sound && sb.is_valid() && index_of(sb.class_index()) == c; });
    if (!sound) return false;
  }
  return true;
}

}  // namespace hm

#include "local/local_heap.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/address_map.h"
#include "base/clock.h"
#include "base/os_pages.h"
#include "base/report.h"
#include "core/current_heap.h"
#include "pages/memory_limit.h"
#include "pages/options.h"

__thread struct hm_local_place_ hm_local_tls_ = hm::kNoPlace;

namespace hm {
namespace {

template <size_t... I>
consteval hm_local_cache_ all_tops(void** top, std::index_sequence<I...>) {
  return {{((void)I, top)...}};
}

}  // namespace

constinit EmptyLocalCache empty_local_cache = {
    all_tops(&empty_local_cache.stack[HM_LOCAL_SLOTS_ - 1], std::make_index_sequence<HM_LOCAL_CACHED_ + 1>{}), {}};

namespace {

constexpr uint64_t kAllUnits = ~uint64_t{0} >> (64 - kUnitsInChunk) & ~uint64_t{0} << kFirstUnit;
constexpr size_t kSurplusUnits = 4;  // this many more than are retained before any go back
constexpr size_t kMinHole = 256;     // shorter free stretches are not reused before their unit is empty

uintptr_t unit_start(const LocalChunk& chunk, size_t unit) { return address_of(&chunk) + unit * kUnit; }
size_t unit_of(uintptr_t address) { return address % kChunk / kUnit; }

uint8_t size_at(const LocalChunk& chunk, size_t granule) {
  return chunk.sizes[granule].load(std::memory_order_relaxed);  // L2: one writer
}
// How many of the next eight granules precede the first one in which a block starts.
size_t free_granules(const LocalChunk& chunk, size_t granule) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < 8; ++i) bytes |= uint64_t{size_at(chunk, granule + i)} << i * 8;
  return bytes == 0 ? 8 : static_cast<size_t>(std::countr_zero(bytes)) / 8;
}
void set_size(LocalChunk& chunk, size_t granule, uint8_t size) {
  chunk.sizes[granule].store(size, std::memory_order_relaxed);
}

}  // namespace

void LocalHeap::use(LocalChunk& chunk, size_t unit, uintptr_t from, uintptr_t to) noexcept {
  hm_local_tls_.cursor = from;
  hm_local_tls_.end = to;
  hm_local_tls_.chunk = address_of(&chunk);
  hm_local_tls_.unit = &chunk.units[unit];
  if (hm_local_tls_.free_chunk == 1) hm_local_tls_.free_chunk = address_of(&chunk);
}

hm_local_place_& LocalHeap::place() noexcept { return my_heap() == heap_ ? hm_local_tls_ : parked_; }

void* LocalHeap::allocate_slow(size_t size) noexcept {
  size_t bytes = hm_local_granules_(size) * kGranule;
  while (hm_local_tls_.end - hm_local_tls_.cursor < bytes)
    if (!next_region(bytes)) return nullptr;
  return hm_local_alloc(size);
}

// The paper's LSL without its traversal: a unit is current, empty (it has a bit), or full (it is in no list).
bool LocalHeap::next_region(size_t least) noexcept {
  if (in_holes_) {
    LocalChunk& chunk = LocalChunk::of(hm_local_tls_.chunk);
    size_t unit = static_cast<size_t>(hm_local_tls_.unit - chunk.units);
    if (use_hole_in(chunk, unit, hm_local_tls_.end, least)) return true;
    in_holes_ = false;
  }
  return use_empty_unit() || use_hole(least) || (limit_admits(kUnit, false) && map_chunk() && use_empty_unit());
}

namespace {

// Heaps share no lock, so a unit is counted before it is asked whether the limit admits it: heaps that grow in the same instant
// may all be refused, but cannot all be served.
bool count_unit() noexcept {
  footprint.add_local(kUnit);
  if (limit_admits(0, false)) return true;
  footprint.subtract_local(kUnit);
  return false;
}

}  // namespace

bool LocalHeap::use_empty_unit() noexcept {
  for (LocalChunk* chunk = chunks(); chunk != nullptr; chunk = chunk->next) {
    if (chunk->empty == 0) continue;
    uint64_t resident = chunk->empty & (chunk->dirty | chunk->dirty_before);
    if (resident == 0 && !count_unit()) return false;
    if (resident != 0) {
      --surplus_units_;
      retention_.on_reuse(os::recent_ms());
    } else if (retention_.has_given_back()) {
      retention_.on_demand(kUnit, os::now_ms(), options.decay_ms);
    }
    uint64_t from = resident != 0 ? resident : chunk->empty;
    auto unit = static_cast<size_t>(std::countr_zero(from));
    uint64_t bit = from & -from;
    chunk->used = 1;
    chunk->empty &= ~bit;
    chunk->dirty &= ~bit;
    chunk->dirty_before &= ~bit;
    use(*chunk, unit, unit_start(*chunk, unit), unit_start(*chunk, unit) + kUnit);
    return true;
  }
  return false;
}

void LocalHeap::coalesce(LocalChunk& chunk, size_t unit) noexcept {
  chunk.units[unit] = {0, 0};
  if (place().unit != &chunk.units[unit]) {
    chunk.empty |= uint64_t{1} << unit;
    chunk.dirty |= uint64_t{1} << unit;
    if (++surplus_units_ * kUnit > options.retain_bytes + kSurplusUnits * kUnit) give_back_surplus();
    return;
  }
  place().cursor = unit_start(chunk, unit);
  place().end = place().cursor + kUnit;
}

// The flag is cleared before the bytes are read, by an exchange so that the two stay in order: a byte that is set too
// late to be seen here sets the flag again.
void LocalHeap::count_remote_frees(LocalChunk& chunk, size_t unit) noexcept {
  if (chunk.remote[unit].load(std::memory_order_relaxed) == 0) return;
  chunk.remote[unit].exchange(0, std::memory_order_acq_rel);
  size_t freed = 0;
  for (size_t g = unit * kUnitGranules; g < (unit + 1) * kUnitGranules; ++g) {
    if (chunk.sizes[g].load(std::memory_order_acquire) != kRemoteFreed) continue;
    set_size(chunk, g, 0);
    ++freed;
  }
  chunk.units[unit].freed += static_cast<uint32_t>(freed);
  if (freed > 0 && chunk.units[unit].freed == chunk.units[unit].allocated) coalesce(chunk, unit);
}

// Before mapping memory, uses what other threads freed and free stretches between longer-lived blocks.  One pass over
// all units, from where the last search ended; a pass in vain is paid for by the 27 units of the chunk that follows it.
bool LocalHeap::use_hole(size_t least) noexcept {
  for (size_t left = count_ * (kUnitsInChunk - kFirstUnit); left > 0; --left) {
    if (hole_chunk_ == nullptr) hole_chunk_ = chunks();
    LocalChunk& chunk = *hole_chunk_;
    size_t unit = hole_unit_;
    if (++hole_unit_ == kUnitsInChunk) {
      hole_unit_ = kFirstUnit;
      hole_chunk_ = chunk.next;
    }
    count_remote_frees(chunk, unit);
    if ((chunk.empty >> unit & 1) != 0) return use_empty_unit();
    if (is_sparse(chunk, unit) && use_hole_in(chunk, unit, unit_start(chunk, unit), least)) return in_holes_ = true;
  }
  return false;
}

// True if half of its blocks were freed since it was last searched.  Lifetimes are mixed then, and caches serve them
// better than bump allocation, so from now on this heap has caches.
bool LocalHeap::is_sparse(LocalChunk& chunk, size_t unit) noexcept {
  hm_local_unit_& counts = chunk.units[unit];
  if (counts.freed < counts.allocated / 2 || counts.freed == 0 || &counts == hm_local_tls_.unit) return false;
  counts.allocated -= counts.freed;
  counts.freed = 0;
  if (place().cache == &empty_local_cache.tops) map_cache();
  return true;
}

bool LocalHeap::use_hole_in(LocalChunk& chunk, size_t unit, uintptr_t from, size_t least) noexcept {
  size_t granule = (from - address_of(&chunk)) / kGranule, end = (unit + 1) * kUnitGranules;
  size_t wanted = std::max(least, kMinHole) / kGranule;
  while (granule < end) {
    size_t hole = granule;
    while (granule < end && free_granules(chunk, granule) == 8) granule += 8;
    if (granule < end) granule += free_granules(chunk, granule);
    granule = std::min(granule, end);
    uintptr_t base = address_of(&chunk);
    if (granule - hole >= wanted) return use(chunk, unit, base + hole * kGranule, base + granule * kGranule), true;
    if (granule == end) break;
    uint8_t byte = size_at(chunk, granule);
    if (byte == kRemoteFreed) break;  // its length is lost: the rest waits until the free has been counted
    granule += byte & ~HM_LOCAL_IN_CACHE_;
  }
  return false;
}

// If there is no memory for them, a heap works without caches.
bool LocalHeap::map_cache() noexcept {
  constexpr size_t kStack = HM_LOCAL_SLOTS_ * sizeof(void*);
  auto* memory = static_cast<char*>(os::map_guarded(sizeof(hm_local_cache_) + (HM_LOCAL_CACHED_ + 2) * kStack));
  if (memory == nullptr) return false;
  auto* cache = reinterpret_cast<hm_local_cache_*>(memory);
  char* stacks = memory + align_up(sizeof(hm_local_cache_), kStack);
  for (size_t g = 0; g <= HM_LOCAL_CACHED_; ++g) cache->top[g] = reinterpret_cast<void**>(stacks + g * kStack);
  place().cache = cache;
  return true;
}

// The owner's free of a block; clears its byte.
void LocalHeap::count_free(LocalChunk& chunk, size_t granule) noexcept {
  size_t unit = granule / kUnitGranules;
  set_size(chunk, granule, 0);
  if (++chunk.units[unit].freed == chunk.units[unit].allocated) coalesce(chunk, unit);
}

// Cached blocks become holes, and units that held nothing else become empty.
void LocalHeap::flush_cache() noexcept {
  hm_local_cache_& cache = *place().cache;
  if (&cache == &empty_local_cache.tops) return;
  for (void**& top : cache.top)
    for (; *top != nullptr; --top) count_free(LocalChunk::of(address_of(*top)), address_of(*top) % kChunk / kGranule);
}

// The current unit becomes one of the empty ones if it holds no block.
void LocalHeap::leave_empty_unit() noexcept {
  hm_local_place_& at = place();
  if (at.unit == nullptr || at.unit->allocated != at.unit->freed) return;
  LocalChunk& chunk = LocalChunk::of(at.chunk);
  auto unit = static_cast<size_t>(at.unit - chunk.units);
  at.unit = nullptr;
  at.cursor = at.end = 0;
  in_holes_ = false;
  coalesce(chunk, unit);
}

bool LocalHeap::map_chunk() noexcept {
  auto* chunk = static_cast<LocalChunk*>(os::map(kChunk, kChunk));
  if (chunk == nullptr) return false;
  os::guard(chunk->guard, kGuard);
  os::guard(chunk->second_guard, kGuard);
  chunk->owner.store(this, std::memory_order_relaxed);  // the release below publishes it
  chunk->empty = kAllUnits;
  chunk->next = chunks();
  chunks_.store(chunk, std::memory_order_release);
  ++count_;
  AddressMap::set(chunk, ChunkKind::kLocal);
  return true;
}

// Chunks are never unmapped: a thread that frees one of our blocks may still be about to set its flag in the chunk's front.
void LocalHeap::release(bool all) noexcept {
  if (all) flush_cache();
  for (LocalChunk* chunk = chunks(); chunk != nullptr; chunk = chunk->next)
    for (size_t unit = kFirstUnit; unit < kUnitsInChunk; ++unit) count_remote_frees(*chunk, unit);
  if (all) leave_empty_unit();
  purge_all_units(all);
}

// If a chunk no longer holds any block, its size bytes, all zero (L3), are given back too.
size_t LocalHeap::purge_units(LocalChunk& chunk, bool all) noexcept {
  size_t bytes = 0;
  uint64_t due = chunk.dirty_before | (all ? chunk.dirty : 0);
  chunk.dirty_before = all ? 0 : chunk.dirty;
  chunk.dirty = 0;
  for (; due != 0; due &= due - 1) {
    auto unit = static_cast<size_t>(std::countr_zero(due));
    if (os::purge(reinterpret_cast<void*>(unit_start(chunk, unit)), kUnit)) bytes += kUnit;
    else chunk.dirty |= due & -due;
  }
  surplus_units_ -= static_cast<uint32_t>(bytes / kUnit);
  footprint.subtract_local(bytes);
  if (chunk.used == 0 || chunk.empty != kAllUnits || (chunk.dirty | chunk.dirty_before) != 0) return bytes;
  uintptr_t from = align_up(address_of(&chunk.sizes), os::page_size());
  uintptr_t to = align_down(address_of(&chunk.sizes) + kChunk / kGranule, os::page_size());
  if (from < to && os::purge(reinterpret_cast<void*>(from), to - from)) bytes += to - from;
  chunk.used = 0;
  return bytes;
}

void LocalHeap::purge_all_units(bool all) noexcept {
  size_t bytes = 0;
  for (LocalChunk* chunk = chunks(); chunk != nullptr; chunk = chunk->next) bytes += purge_units(*chunk, all);
  footprint.count_purged(bytes);
}

void LocalHeap::give_back_surplus() noexcept {
  uint64_t now = os::now_ms();
  size_t surplus = surplus_units_ * kUnit;
  if (surplus <= options.retain_bytes + retention_.allowance(now, options.decay_ms)) return;
  purge_all_units(true);
  retention_.on_purge(surplus - surplus_units_ * kUnit, now, options.decay_ms);
}

void LocalHeap::park() noexcept {
  parked_ = hm_local_tls_;
  hm_local_tls_ = kNoPlace;
}
void LocalHeap::resume() noexcept { hm_local_tls_ = parked_; }

bool LocalHeap::is_valid() noexcept {
  for (LocalChunk* chunk = chunks(); chunk != nullptr; chunk = chunk->next)
    for (size_t unit = kFirstUnit; unit < kUnitsInChunk; ++unit) {
      size_t live = 0;
      for (size_t g = unit * kUnitGranules; g < (unit + 1) * kUnitGranules; ++g) live += size_at(*chunk, g) != 0;
      const hm_local_unit_& counts = chunk->units[unit];
      if (counts.allocated - counts.freed != live) return false;  // L3
      if ((chunk->empty >> unit & 1) != 0 && live != 0) return false;
    }
  return true;
}

size_t local_size(const void* block) noexcept {
  uintptr_t address = address_of(block);
  if (address % kGranule != 0) return 0;
  uint8_t granules = size_at(LocalChunk::of(address), address % kChunk / kGranule);
  return granules >= kInCache ? 0 : granules * kGranule;
}

bool free_local(void* block, const char* function) noexcept {
  uintptr_t address = address_of(block);
  LocalChunk& chunk = LocalChunk::of(address);
  size_t granule = address % kChunk / kGranule, unit = unit_of(address);
  if (address % kGranule != 0) die_on_misuse(function, block, "misaligned pointer");
  if (local_size(block) == 0) {
    for (size_t g = granule; g-- > std::max(unit * kUnitGranules, granule - std::min(granule, size_t{112}));)
      if (uint8_t n = size_at(chunk, g); n < kInCache && g + n > granule)
        die_on_misuse(function, block, "points into a block, not to its start");
    die_on_misuse(function, block, "double free, or never a block");
  }
  // Relaxed: the chunk had its owner before any block of it was handed out.
  LocalHeap& owner = *chunk.owner.load(std::memory_order_relaxed);
  if (owner.heap() != my_heap()) {
    // Release: our accesses to the block happen before the owner reuses it.
    chunk.sizes[granule].store(kRemoteFreed, std::memory_order_release);
    // An exchange, so that the owner's exchange is ordered after all frees and not only after the last.
    bool first = chunk.remote[unit].exchange(1, std::memory_order_acq_rel) == 0;
    if (first) owner.disturb();
    return first;
  }
  hm_local_tls_.free_chunk = address_of(&chunk);
  owner.count_free(chunk, granule);
  return false;
}

}  // namespace hm

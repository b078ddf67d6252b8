#include "hmalloc/local_heap.h"

#include <algorithm>

#include "base/address_map.h"
#include "base/os_pages.h"
#include "base/report.h"
#include "hmalloc/thread_heap.h"

__thread struct hm_local_place_ hm_local_tls_ = {0, 0, 0, 1, nullptr};

namespace hm {
namespace {

constexpr size_t kLeastHole = 4 * kKiB;  // shorter free stretches wait until their unit is empty

uintptr_t unit_start(const LocalChunk& chunk, size_t unit) { return address_of(&chunk) + unit * kUnit; }
size_t unit_of(uintptr_t address) { return address % kChunk / kUnit; }

uint8_t size_at(const LocalChunk& chunk, size_t granule) {
  return chunk.sizes[granule].load(std::memory_order_relaxed);  // L2: one writer
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
  size_t bytes = align_up(std::max(size, size_t{1}), kGranule);
  while (hm_local_tls_.end - hm_local_tls_.cursor < bytes)
    if (!next_region()) return nullptr;
  return hm_local_alloc(size);
}

// The paper's LSL, without its traversal: a unit is current, empty (a bit), or full (nowhere).
bool LocalHeap::next_region() noexcept {
  return use_empty_unit() || use_hole() || (map_chunk() && use_empty_unit());
}

bool LocalHeap::use_empty_unit() noexcept {
  for (LocalChunk* chunk = chunks(); chunk != nullptr; chunk = chunk->next) {
    if (chunk->empty == 0) continue;
    auto unit = static_cast<size_t>(std::countr_zero(chunk->empty));
    uint64_t bit = chunk->empty & -chunk->empty;
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
    return;
  }
  place().cursor = unit_start(chunk, unit);
  place().end = place().cursor + kUnit;
}

// The flag is cleared before the bytes are read, by an exchange so that the two keep their order: a byte that is set
// too late to be seen here sets the flag again.
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

// Before new memory: what other threads freed, and long free stretches between long-lived blocks.  One round over all
// units, from where the last search ended: a barren round is paid for by the 29 units of the chunk that follows it.
bool LocalHeap::use_hole() noexcept {
  for (size_t left = count_ * (kUnitsInChunk - kFirstUnit); left > 0; --left) {
    if (hole_chunk_ == nullptr) hole_chunk_ = chunks();
    if (use_hole_in(*hole_chunk_, hole_unit_)) return true;
    if (++hole_unit_ < kUnitsInChunk) continue;
    hole_unit_ = kFirstUnit;
    hole_chunk_ = hole_chunk_->next;
  }
  return false;
}

bool LocalHeap::use_hole_in(LocalChunk& chunk, size_t unit) noexcept {
  count_remote_frees(chunk, unit);
  if ((chunk.empty >> unit & 1) != 0) return use_empty_unit();
  const hm_local_unit_& counts = chunk.units[unit];
  bool current = &counts == hm_local_tls_.unit;
  if (current && hm_local_tls_.end - hm_local_tls_.cursor >= kLeastHole) return true;  // it has just become empty
  if (counts.freed < counts.allocated / 4 * 3) return false;
  uintptr_t from = current ? hm_local_tls_.end : unit_start(chunk, unit);
  uintptr_t end = unit_start(chunk, unit) + kUnit;
  while (from < end) {
    uintptr_t to = from;
    while (to < end && size_at(chunk, to % kChunk / kGranule) == 0) to += kGranule;
    if (to - from >= kLeastHole) return use(chunk, unit, from, to), true;
    // The length of a block that was freed elsewhere just now is gone: the rest of the unit waits.
    if (to == end || size_at(chunk, to % kChunk / kGranule) == kRemoteFreed) break;
    from = to + size_at(chunk, to % kChunk / kGranule) * kGranule;
  }
  return false;
}

bool LocalHeap::map_chunk() noexcept {
  auto* chunk = static_cast<LocalChunk*>(os::map(kChunk, kChunk));
  if (chunk == nullptr) return false;
  chunk->owner.store(heap_, std::memory_order_relaxed);
  chunk->empty = ~uint64_t{0} >> (64 - kUnitsInChunk) & ~uint64_t{0} << kFirstUnit;
  chunk->next = chunks();
  chunks_.store(chunk, std::memory_order_release);
  ++count_;
  AddressMap::set(chunk, ChunkKind::kLocal);
  return true;
}

// Chunks stay: a thread that frees a block of ours may still be about to set its flag in the chunk's front.
size_t LocalHeap::release(bool all) noexcept {
  size_t bytes = 0;
  for (LocalChunk* chunk = chunks(); chunk != nullptr; chunk = chunk->next) {
    for (size_t unit = kFirstUnit; unit < kUnitsInChunk; ++unit) count_remote_frees(*chunk, unit);
    uint64_t due = chunk->dirty_before | (all ? chunk->dirty : 0);
    chunk->dirty_before = all ? 0 : chunk->dirty;
    chunk->dirty = 0;
    for (; due != 0; due &= due - 1) {
      auto unit = static_cast<size_t>(std::countr_zero(due));
      if (os::purge(reinterpret_cast<void*>(unit_start(*chunk, unit)), kUnit)) bytes += kUnit;
      else chunk->dirty |= due & -due;
    }
  }
  return bytes;
}

void LocalHeap::park() noexcept {
  parked_ = hm_local_tls_;
  hm_local_tls_ = {0, 0, 0, 1, nullptr};
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
  return granules == kRemoteFreed ? 0 : granules * kGranule;
}

void free_local(void* block, const char* function) noexcept {
  uintptr_t address = address_of(block);
  LocalChunk& chunk = LocalChunk::of(address);
  size_t granule = address % kChunk / kGranule, unit = unit_of(address);
  if (address % kGranule != 0) misuse(function, block, "misaligned pointer");
  if (local_size(block) == 0) {
    for (size_t g = granule; g-- > std::max(unit * kUnitGranules, granule - std::min(granule, size_t{252}));)
      if (uint8_t n = size_at(chunk, g); n != 0 && n != kRemoteFreed && g + n > granule)
        misuse(function, block, "points into a block, not to its start");
    misuse(function, block, "double free, or never a block");
  }
  if (chunk.owner.load(std::memory_order_relaxed) != my_heap()) {
    // Release: our accesses to the block come before the owner's reuse of it.
    chunk.sizes[granule].store(kRemoteFreed, std::memory_order_release);
    // An exchange, so that the owner's exchange is ordered behind all of several frees, not only the last.
    chunk.remote[unit].exchange(1, std::memory_order_acq_rel);
    return;
  }
  hm_local_tls_.free_chunk = address_of(&chunk);
  set_size(chunk, granule, 0);
  if (++chunk.units[unit].freed == chunk.units[unit].allocated) my_heap()->local.coalesce(chunk, unit);
}

}  // namespace hm

#include "pages/slice_pool.h"

#include <algorithm>
#include <iterator>

#include "base/clock.h"
#include "base/intrusive_list.h"
#include "base/os_pages.h"
#include "pages/footprint.h"
#include "pages/memory_limit.h"
#include "pages/options.h"

namespace hm {

constinit SlicePool slice_pool;

namespace {

constexpr size_t kFewReuses = 8;      // with fewer reuses per opened chunk, the program is growing
constexpr size_t kGrowingSooner = 8;  // a growing program gets huge pages at a footprint smaller by this factor

}  // namespace

SlicePool::Place SlicePool::look_for(size_t n) noexcept {
  Chunk* chunk = index_.find(n);
  if (chunk == nullptr) return {};
  uint64_t starts = starts_of_runs(chunk->free, n);
  return {chunk, starts, starts & (chunk->dirty | chunk->dirty_before)};
}

// Prefers dirty slices: they are resident and warm.
SlicePool::Run SlicePool::find(size_t n) noexcept {
  Place place = look_for(n);
  if (place.chunk == nullptr) return {};
  auto slice = static_cast<size_t>(std::countr_zero(place.warm != 0 ? place.warm : place.starts));
  uint64_t more = fresh(*place.chunk, mask_of(slice, n));
  if (more != 0 && !limit_admits(bytes_in(more), n == 1)) return {};
  return take(*place.chunk, slice, n);
}

bool SlicePool::has_resident(size_t n) noexcept {
  if (surplus_slices() == 0) return false;
  LockGuard guard(lock_);
  return look_for(n).warm != 0;
}

SlicePool::Run SlicePool::allocate(size_t n, bool map) noexcept {
  {
    LockGuard guard(lock_);
    Run run = find(n);
    if (run.first != nullptr || !map || !limit_admits(n * kSlice, n == 1)) return run;
  }
  // Threads that run out of slices at the same time share one new chunk while the footprint is small.
  size_t openers = std::min(chunks() / kChunksPerOpener + 1, std::size(openers_));
  Opener& opener = openers_[next_turn_.fetch_add(1, std::memory_order_relaxed) % openers];
  LockGuard turn(opener.lock);
  for (;;) {
    Chunk* chunk;
    bool huge;
    {
      LockGuard guard(lock_);
      opener.chunk = nullptr;
      Run run = find(n);
      if (run.first != nullptr || !limit_admits(n * kSlice, n == 1)) return run;
      opener.chunk = chunk = prepare_chunk(n);
      if (chunk == nullptr) return {};
      huge = chunk->huge && guards_in(*chunk) == 0;
    }
    // Outside the lock, so that no other thread waits while the system clears it.
    SliceGuards::make(*chunk);
    uint64_t before = os::cpu_ns();
    if (huge) *slice_at(*chunk, 0) = 0;
    open(*chunk, huge, os::cpu_ns() - before);
  }
}

SlicePool::Run SlicePool::take(Chunk& chunk, size_t slice, size_t n) noexcept {
  uint64_t mask = mask_of(slice, n);
  bool zeroed = (chunk.used & mask) == 0;
  uint64_t more = fresh(chunk, mask);
  if (more != 0) ask_for(more);
  else if (surplus_slices() * kSlice > options.retain_bytes) retention_.on_reuse(os::recent_ms());
  chunk.used |= mask;
  chunk.free &= ~mask;
  chunk.dirty &= ~mask;
  chunk.dirty_before &= ~mask;
  chunk.refused &= ~mask;
  used_.store(used() + n, std::memory_order_relaxed);
  max_used_ = std::max(max_used_, used());
  if (more != 0) count_resident(slices_in(more), 0);
  index_.update(chunk);
  recount(chunk);
  return {&Slice::of(address_of(slice_at(chunk, slice))), zeroed};
}

bool SlicePool::extend(Slice& first, size_t old_slices, size_t new_slices) noexcept {
  size_t from = first.slice() % kSlicesInChunk + old_slices;
  if (from + (new_slices - old_slices) > kSlicesInChunk) return false;
  LockGuard guard(lock_);
  Chunk& chunk = Chunk::of(first);
  uint64_t mask = mask_of(from, new_slices - old_slices);
  if ((chunk.free & mask) != mask || !limit_admits(bytes_in(fresh(chunk, mask)), false)) return false;
  take(chunk, from, new_slices - old_slices);
  return true;
}

void SlicePool::release(Slice& first, size_t n) noexcept {
  bool whole, too_much;
  {
    LockGuard guard(lock_);
    Chunk& chunk = Chunk::of(first);
    uint64_t mask = mask_of(first.slice() % kSlicesInChunk, n);
    chunk.free |= mask;
    chunk.dirty |= mask;
    index_.update(chunk);
    recount(chunk);
    used_.store(used() - n, std::memory_order_relaxed);
    whole = chunk.free == all_slices(chunk);
    if (whole) goes_first(chunk);
    too_much = surplus_slices() * kSlice > patience(whole) && surplus_beyond_retention() > patience(whole);
  }
  if (too_much) give_back_surplus(whole);
}

bool SlicePool::wants_huge_pages() noexcept {
  if (SliceGuards::are_on()) return false;  // each would be taken apart
  bool growing = reuses_.exchange(0, std::memory_order_relaxed) < kFewReuses;
  size_t after = growing ? options.huge_pages_after / kGrowingSooner : options.huge_pages_after;
  if ((chunks() + 1) * kChunk + footprint.huge() <= after || huge_page_policy_.pausing()) return false;
  if (!limit_admits(kChunk, false)) return false;
  // A sample of which little was used, or much was given back, says nothing about the program; the last verdict stands.
  if (density_sample_ == nullptr) return dense_;
  uint64_t used = density_sample_->used, slices = all_slices(*density_sample_);
  if (8 * slices_in(used) < 7 * slices_in(slices)) return dense_;
  char* first = slice_at(*density_sample_, static_cast<size_t>(std::countr_zero(slices)));
  return dense_ = HugePagePolicy::is_dense(os::resident(first, bytes_in(slices)), bytes_in(used));
}

// For the closed chunks of a region from `from` on, in few system calls, because each blocks the other threads' page faults.
// Open chunks stay as they are: one that has given up its huge page has holes, which the system would fill.
void SlicePool::set_huge(Region& region, size_t from, bool huge) noexcept {
  Chunk* chunks = Chunk::of_region(region.start());
  for (unsigned left = region.ready() & kAllChunks << from; left != 0;) {
    auto first = static_cast<size_t>(std::countr_zero(left)), n = static_cast<size_t>(std::countr_one(left >> first));
    for (size_t i = first; i < first + n; ++i) chunks[i].huge = huge;
    os::prefer_huge_pages(slice_at(chunks[first], 0), n * kChunk, huge);
    left &= ~(((1u << n) - 1) << first);
  }
}

// Returns a closed chunk that no other thread will open.
Chunk* SlicePool::prepare_chunk(size_t n) noexcept {
  Region* region = room(n);
  if (region == nullptr) return nullptr;
  auto index = static_cast<size_t>(std::countr_zero(region->ready()));
  Chunk& chunk = Chunk::of_region(region->start())[index];
  if (index > 0) {
    bool huge = wants_huge_pages();
    if (huge != chunk.huge) set_huge(*region, index, huge);
  }
  region->closed &= static_cast<uint8_t>(~(1u << index));
  if (region->ready() == 0) unlink(with_ready_chunks_, *region, &Region::next, &Region::previous);
  return &chunk;
}

void SlicePool::open(Chunk& chunk, bool huge, uint64_t cleared_ns) noexcept {
  LockGuard guard(lock_);
  if (huge) huge_page_policy_.took(cleared_ns);
  else density_sample_ = &chunk;
  chunk.free = all_slices(chunk);
  chunk.used = chunk.dirty_before = chunk.refused = 0;
  chunk.dirty = huge ? chunk.free : 0;
  if (huge) ask_for(chunk.free);
  count_resident(slices_in(chunk.dirty), 0);
  link_first(all_, chunk, &Chunk::next, &Chunk::previous);
  index_.update(chunk);
  recount(chunk);
  chunks_.store(chunks() + 1, std::memory_order_relaxed);
  AddressMap::set(slice_at(chunk, 0), ChunkKind::kSlices);
}

void SlicePool::count_resident(size_t more, size_t fewer) noexcept {
  resident_ = resident_ + more - fewer;
  footprint.set_slices(resident_ * kSlice);
}

SlicePool::Gauges SlicePool::gauges() noexcept {
  LockGuard guard(lock_);
  Gauges g{chunks(), 0, 0, max_used_, regions_ * kRegion - chunks() * kChunk};
  for (Region* region = mapped_; region != nullptr; region = region->next_mapped)
    g.space -= static_cast<size_t>(std::popcount(region->absent)) * kChunk;
  for (Chunk* chunk = all_; chunk != nullptr; chunk = chunk->next) {
    g.free_slices += slices_in(chunk->free);
    g.dirty_slices += slices_in(chunk->dirty | chunk->dirty_before);
  }
  return g;
}

}  // namespace hm

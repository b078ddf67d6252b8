// The slice pool's purges: what is given back to the system, when, and how chunks and regions are closed.
#include <utility>

#include "base/clock.h"
#include "base/intrusive_list.h"
#include "base/os_pages.h"
#include "base/process.h"
#include "pages/memory_limit.h"
#include "pages/options.h"
#include "pages/slice_pool.h"

namespace hm {
namespace {

constexpr size_t kStateGroup = 8;  // slices whose states fill one page of 4 KB, or four pages

// The groups of slices that contain any of these.
uint64_t whole_groups(uint64_t slices) noexcept {
  uint64_t groups = 0;
  for (size_t at = 0; at < kSlicesInChunk; at += kStateGroup)
    if ((slices & mask_of(at, kStateGroup)) != 0) groups |= mask_of(at, kStateGroup);
  return groups;
}

// Purges the whole pages within the range.
void purge_within(uintptr_t from, size_t bytes) noexcept {
  uintptr_t first = align_up(from, os::page_size()), end = align_down(from + bytes, os::page_size());
  if (first < end) os::purge(reinterpret_cast<void*>(first), end - first);
}

// The states of free slices are all FREE (S3), which is zero, so their pages can be purged too; neighbours in one call.
void purge_states(const Chunk& chunk, uint64_t free_slices) noexcept {
  uint64_t own = all_slices(chunk), groups = whole_groups(own) & ~whole_groups(own & ~free_slices);
  while (groups != 0) {
    auto at = static_cast<size_t>(std::countr_zero(groups)), n = static_cast<size_t>(std::countr_one(groups >> at));
    size_t slice = chunk.index() * kSlicesInChunk + at;
    purge_within(chunk.region() + kLineStates + slice * kLineStatesArea, n * kLineStatesArea);
    purge_within(chunk.region() + kGranuleStates + slice * kGranuleStatesArea, n * kGranuleStatesArea);
    groups &= ~mask_of(at, n);
  }
}

}  // namespace

// The chunk's memory has already been given back.
void SlicePool::close(Chunk& chunk) noexcept {
  AddressMap::set(slice_at(chunk, 0), ChunkKind::kGone);
  if (density_sample_ == &chunk) density_sample_ = nullptr;
  index_.remove(chunk);
  unlink(all_, chunk, &Chunk::next, &Chunk::previous);
  chunks_.store(chunks() - 1, std::memory_order_relaxed);
  Region& region = Region::of(chunk);
  if (region.ready() == 0) link_first(with_ready_chunks_, region, &Region::next, &Region::previous);
  region.closed |= static_cast<uint8_t>(1u << chunk.index());
  if (region.closed == kAllChunks) unmap(region);
}

// Takes the slices out of `free` and notes them, so that the child of a fork does not lose them.
void SlicePool::claim(Chunk& chunk, uint64_t slices) noexcept {
  claimed_.slices = slices;
  keep_order();
  claimed_.chunk = &chunk;
  keep_order();
  chunk.free &= ~slices;
  index_.update(chunk);
}

void SlicePool::return_claimed() noexcept {
  Chunk& chunk = *claimed_.chunk;
  chunk.free |= claimed_.slices;
  index_.update(chunk);
  keep_order();
  claimed_.chunk = nullptr;
}

namespace {

// Where a page is larger than a slice, a page's slices go together.
uint64_t page_mates(uint64_t slices) noexcept {
  constexpr uint64_t kEven = 0x5555555555555555;
  if (os::page_size() <= kSlice) return slices;
  uint64_t first = (slices | slices >> 1) & kEven;
  return first | first << 1;
}
uint64_t whole_pages(uint64_t slices) noexcept { return ~page_mates(~slices); }

}  // namespace

// Returns what is to be purged of a chunk and marks it clean; slices that share a page with a slice in use stay dirty.
uint64_t SlicePool::take_due(Chunk& chunk, Purge what) noexcept {
  if (what == Purge::kSurplus && chunk.surplus == 0) return 0;
  bool now = what != Purge::kDue;
  uint64_t pages = whole_pages(chunk.free), left = what == Purge::kSurplus ? chunk.refused : 0;
  uint64_t dirty = chunk.dirty & ~left, due = (chunk.dirty_before & ~left) | (now ? dirty : 0);
  chunk.dirty_before = (chunk.dirty_before & left) | (now ? 0 : dirty);
  chunk.dirty = (chunk.dirty & left) | (due & ~pages);
  chunk.used |= due & pages;  // of a huge page a slice is resident before it is used; counted until its memory is back
  due = page_mates(due & pages);
  chunk.dirty &= ~due;
  chunk.dirty_before &= ~due;
  return due;
}

// Returns the slices that the system refused.  It refuses a whole call if one page is locked, so then they are tried singly,
// unless it had refused all of them before: a program that locks its memory (mlockall) would have each tried in each round.
uint64_t SlicePool::purge_slices(const Chunk& chunk, uint64_t slices, uint64_t refused_before) noexcept {
  uint64_t refused = 0;
  for (uint64_t left = slices; left != 0;) {
    auto slice = static_cast<size_t>(std::countr_zero(left));
    auto n = static_cast<size_t>(std::countr_one(left >> slice)), step = std::max(os::page_size() / kSlice, size_t{1});
    left &= ~mask_of(slice, n);
    if (os::purge(slice_at(chunk, slice), n * kSlice)) continue;
    if ((mask_of(slice, n) & ~refused_before) == 0 && !os::purge(slice_at(chunk, slice), step * kSlice)) {
      refused |= mask_of(slice, n);
      continue;
    }
    for (size_t end = slice + n; slice < end; slice += step)
      if (n <= step || !os::purge(slice_at(chunk, slice), step * kSlice)) refused |= mask_of(slice, step);
  }
  return refused;
}

// Gives back what is due in one chunk, with the lock released: meanwhile these slices are neither free nor used.  A
// chunk without a used slice is closed, except the last one: a program that needed one will need one again.
size_t SlicePool::purge_chunk(Chunk& chunk, Purge what) noexcept {
  uint64_t due, claimed = 0, refused_before = 0;
  bool whole, huge = false;
  {
    LockGuard guard(lock_);
    refused_before = chunk.refused;
    due = take_due(chunk, what);
    whole = chunk.free == all_slices(chunk) && (chunk.dirty | chunk.dirty_before) == 0 && chunks() > 1;
    if (due != 0 || (whole && what != Purge::kSurplus)) {
      claimed = whole ? chunk.free : whole_groups(due) & chunk.free;
      claim(chunk, claimed);
      huge = !whole && std::exchange(chunk.huge, false);
    }
    recount(chunk);
  }
  if (claimed == 0) return 0;
  if (huge) os::prefer_huge_pages(slice_at(chunk, 0), kChunk, false);  // as in give_up_huge_page
  bool in_one_call = whole && (due & refused_before) == 0;
  uint64_t refused = purge_slices(chunk, in_one_call ? claimed | guards_in(chunk) : due, refused_before) & due;
  purge_states(chunk, claimed);
  LockGuard guard(lock_);
  return_claimed();
  count_resident(slices_in(refused), slices_in(due & chunk.used));
  chunk.used &= ~(due & ~refused);
  chunk.dirty |= refused;  // still resident; tried again next round
  chunk.refused = (chunk.refused & ~due) | refused;
  recount(chunk);
  if (whole && refused == 0) close(chunk);
  return bytes_in(due & ~refused);
}

void SlicePool::give_up_huge_page(const Slice& slice) noexcept {
  Chunk& chunk = Chunk::of(slice);
  {
    LockGuard guard(lock_);
    if (!std::exchange(chunk.huge, false)) return;
    recount(chunk);
  }
  os::prefer_huge_pages(slice_at(chunk, 0), kChunk, false);
}

size_t SlicePool::purge(Purge what, size_t most) noexcept {
  size_t purged;
  {
    LockGuard exclusive(purge_lock_);
    purged = purge_chunks(what, most);
    footprint.count_purged(purged);
    LockGuard guard(lock_);
    if (what == Purge::kDue) retention_.on_expire(purged);
  }
  give_back_surplus(false);  // what others freed meanwhile, because they found the lock taken
  return purged;
}

// Only purges close chunks, and purges exclude each other, so the list can be followed without the pool's lock: new
// chunks are added at its front.
size_t SlicePool::purge_chunks(Purge what, size_t most) noexcept {
  Chunk* chunk;
  {
    LockGuard guard(lock_);
    // Who asks for room looks only if there is any; a round also closes chunks that were given back before.
    chunk = most != SIZE_MAX && resident_ == used() ? nullptr : all_;
  }
  size_t purged = 0;
  while (chunk != nullptr && purged < most) {
    Chunk* next = chunk->next;
    purged += purge_chunk(*chunk, what);
    chunk = next;
  }
  return purged;
}

// Purges the first chunk that has a surplus.  The caller holds purge_lock_, without which no chunk is closed.
size_t SlicePool::purge_surplus() noexcept {
  Chunk* chunk;
  {
    LockGuard guard(lock_);
    chunk = first_surplus_;
  }
  return chunk != nullptr ? purge_chunk(*chunk, Purge::kSurplus) : 0;
}

// A huge page is kept as long as half of it is in use, or while it is being filled for the first time.
size_t SlicePool::surplus_of(const Chunk& chunk) noexcept {
  uint64_t resident = (chunk.dirty | chunk.dirty_before) & ~chunk.refused & whole_pages(chunk.free);
  if (!chunk.huge) return slices_in(resident & chunk.used);
  bool filling = slices_in(chunk.free & ~chunk.used) > kSlicesInChunk / 2 && chunk.free != all_slices(chunk);
  return filling || slices_in(chunk.free) < kSlicesInChunk / 2 ? 0 : slices_in(resident);
}

void SlicePool::recount(Chunk& chunk) noexcept {
  size_t now = surplus_of(chunk), before = std::exchange(chunk.surplus, static_cast<uint8_t>(now));
  if (now == before) return;
  surplus_.store(surplus_slices() + now - before, std::memory_order_relaxed);
  if (before == 0) link_surplus(chunk);
  if (now == 0) unlink_surplus(chunk);
}

void SlicePool::link_surplus(Chunk& chunk) noexcept {
  link_behind(first_surplus_, last_surplus_, chunk, &Chunk::next_surplus, &Chunk::previous_surplus);
  last_surplus_ = &chunk;
}

void SlicePool::unlink_surplus(Chunk& chunk) noexcept {
  if (last_surplus_ == &chunk) last_surplus_ = chunk.previous_surplus;
  unlink(first_surplus_, chunk, &Chunk::next_surplus, &Chunk::previous_surplus);
}

void SlicePool::goes_first(Chunk& chunk) noexcept {
  if (chunk.surplus == 0 || first_surplus_ == &chunk) return;
  unlink_surplus(chunk);
  link_first(first_surplus_, chunk, &Chunk::next_surplus, &Chunk::previous_surplus);
}

size_t SlicePool::surplus_bytes() noexcept {
  LockGuard guard(lock_);
  return surplus_beyond_retention();
}

size_t SlicePool::surplus_beyond_retention() const noexcept {
  size_t bytes = surplus_slices() * kSlice;
  if (is_above_soft_limit()) return bytes;
  if (bytes <= options.retain_bytes) return 0;
  // The clock is read under the lock, as when memory was asked for: time must not go back.
  size_t kept = options.retain_bytes + retention_.allowance(os::now_ms(), options.decay_ms);
  return bytes - std::min(bytes, kept);
}

// How many bytes of surplus may wait before any are given back.  A thread that frees many blocks soon frees what lies
// between free slices, and then a whole chunk goes back with one call; hence an empty chunk goes first.
size_t SlicePool::patience(bool whole) const noexcept {
  size_t slices = is_above_soft_limit() ? kMinPatience : std::clamp(used() / 8, kMinPatience, kMaxPatience);
  return (whole ? slices / 2 : slices) * kSlice;
}

void SlicePool::ask_for(uint64_t slices) noexcept {
  if (retention_.has_given_back()) retention_.on_demand(bytes_in(slices), os::now_ms(), options.decay_ms);
}

// A thread that finds another one giving back leaves the work to it; so that one looks again when it is done.
void SlicePool::give_back_surplus(bool whole) noexcept {
  for (size_t bytes = 1; bytes > 0; whole = false) {
    if (surplus_bytes() <= patience(whole)) return;
    {
      TryLockGuard exclusive(purge_lock_);
      if (!exclusive.holds()) return;
      bytes = purge_surplus();
    }
    footprint.count_purged(bytes);
    LockGuard guard(lock_);
    retention_.on_purge(bytes, os::now_ms(), options.decay_ms);
  }
}

}  // namespace hm

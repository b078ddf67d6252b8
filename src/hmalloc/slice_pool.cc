#include "hmalloc/slice_pool.h"

#include <algorithm>
#include <new>

#include "hmalloc/options.h"
#include "base/os_pages.h"
#include "hmalloc/large.h"

namespace hm {

constinit SlicePool slice_pool;

namespace {

constexpr size_t kMostChunksAtATime = 16;

constexpr uint64_t mask_of(size_t slice, size_t n) { return (n == 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1) << slice; }
constexpr uint64_t kAllSlices = mask_of(kMetaSlices, kSlicesInChunk - kMetaSlices);

uintptr_t start_of(const ChunkHeader& chunk) { return align_down(address_of(&chunk), kChunk); }
ChunkHeader& chunk_of(const Superblock& sb) {
  return *reinterpret_cast<ChunkHeader*>(align_down(address_of(&sb), kChunk) + kDescriptors);
}
size_t slice_of(const Superblock& sb) { return (address_of(&sb) % kChunk - kDescriptors) / sizeof(Superblock); }

// Bit i of the result: slices i .. i+n-1 are all in `free`.
uint64_t starts_of_runs(uint64_t free, size_t n) {
  for (size_t have = 1; have < n && free != 0;) {
    size_t step = n - have < have ? n - have : have;
    free &= free >> step;
    have += step;
  }
  return free;
}

}  // namespace

// Dirty slices first: they are resident and warm.
SlicePool::Run SlicePool::allocate(size_t n, bool map) noexcept {
  LockGuard guard(lock_);
  for (ChunkHeader* chunk = open_; chunk != nullptr; chunk = chunk->next_open) {
    uint64_t starts = starts_of_runs(chunk->free, n);
    if (starts == 0) continue;
    uint64_t warm = starts & (chunk->dirty | chunk->dirty_before);
    return take(*chunk, static_cast<size_t>(std::countr_zero(warm != 0 ? warm : starts)), n);
  }
  if (!map) return {};
  ChunkHeader* chunk = map_chunk(wants_huge_pages());
  if (chunk == nullptr) return {};
  return take(*chunk, kMetaSlices, n);
}

SlicePool::Run SlicePool::take(ChunkHeader& chunk, size_t slice, size_t n) noexcept {
  uint64_t mask = mask_of(slice, n);
  bool zeroed = ((chunk.dirty | chunk.dirty_before) & mask) == 0;
  chunk.free &= ~mask;
  chunk.dirty &= ~mask;
  chunk.dirty_before &= ~mask;
  used_ += n;
  if (used_ > most_used_) most_used_ = used_;
  if (chunk.free == 0) close(chunk);
  return {&Superblock::of(start_of(chunk) + slice * kSlice), zeroed};
}

bool SlicePool::extend(Superblock& first, size_t old_slices, size_t new_slices) noexcept {
  size_t from = slice_of(first) + old_slices;
  if (from + (new_slices - old_slices) > kSlicesInChunk) return false;
  LockGuard guard(lock_);
  ChunkHeader& chunk = chunk_of(first);
  uint64_t mask = mask_of(from, new_slices - old_slices);
  if ((chunk.free & mask) != mask) return false;
  take(chunk, from, new_slices - old_slices);
  return true;
}

void SlicePool::release(Superblock& first, size_t n) noexcept {
  LockGuard guard(lock_);
  ChunkHeader& chunk = chunk_of(first);
  uint64_t mask = mask_of(slice_of(first), n);
  if (chunk.free == 0) open(chunk);
  chunk.free |= mask;
  chunk.dirty |= mask;
  used_ -= n;
}

bool SlicePool::wants_huge_pages() noexcept {
  if ((chunks() + 1) * kChunk + huge_bytes() <= options.huge_pages_after || sample_ == nullptr) return false;
  return huge_pages_.wanted([this] {
    constexpr size_t kBytes = kMaxRun * kSlice;
    return HugePages::is_dense(os::resident(reinterpret_cast<void*>(start_of(*sample_) + kMetaSlices * kSlice), kBytes), kBytes);
  });
}

// Address space for a chunk.  More is mapped at a time the more there is: each call keeps the other threads of the process
// from their page faults.
char* SlicePool::take_space(bool huge) noexcept {
  Space& space = spaces_[huge];
  if (space.begin == space.end) {
    size_t bytes = std::clamp<size_t>(chunks() / 4, 1, kMostChunksAtATime) * kChunk;
    auto* base = static_cast<char*>(os::map(bytes, kChunk));
    if (base == nullptr) base = static_cast<char*>(os::map(bytes = kChunk, kChunk));
    if (base == nullptr) return nullptr;
    if (huge) os::prefer_huge_pages(base, bytes);
    space = {base, base + bytes};
  }
  return space.end -= kChunk;  // downwards, as mappings grow
}

// Under the lock, so that threads that run out together map one chunk and not one each.
ChunkHeader* SlicePool::map_chunk(bool huge) noexcept {
  char* base = take_space(huge);
  if (base == nullptr) return nullptr;
  size_t chunks = this->chunks() + 1;
  uint64_t before = huge ? os::cpu_ns() : 0;
  auto* chunk = new (base + kDescriptors) ChunkHeader;
  if (huge) huge_pages_.took(os::cpu_ns() - before);
  else sample_ = chunk;
  chunk->free = kAllSlices;
  chunk->next = all_;
  if (all_ != nullptr) all_->previous = chunk;
  all_ = chunk;
  chunks_.store(chunks, std::memory_order_relaxed);
  open(*chunk);
  AddressMap::set(base, ChunkKind::kSlices);
  return chunk;
}

void SlicePool::open(ChunkHeader& chunk) noexcept {
  chunk.previous_open = nullptr;
  chunk.next_open = open_;
  if (open_ != nullptr) open_->previous_open = &chunk;
  open_ = &chunk;
}

void SlicePool::close(ChunkHeader& chunk) noexcept {
  (chunk.previous_open != nullptr ? chunk.previous_open->next_open : open_) = chunk.next_open;
  if (chunk.next_open != nullptr) chunk.next_open->previous_open = chunk.previous_open;
}

// The last chunk stays: a program that needed one will need one.
bool SlicePool::unmap_if_unused(ChunkHeader& chunk) noexcept {
  if (chunk.free != kAllSlices || chunks() <= 1) return false;
  void* base = reinterpret_cast<void*>(start_of(chunk));
  AddressMap::set(base, ChunkKind::kForeign);
  close(chunk);
  if (sample_ == &chunk) sample_ = nullptr;
  (chunk.previous != nullptr ? chunk.previous->next : all_) = chunk.next;
  if (chunk.next != nullptr) chunk.next->previous = chunk.previous;
  ChunkHeader* next = chunk.next;
  ChunkHeader* previous = chunk.previous;
  if (os::unmap(base, kChunk)) {
    chunks_.store(chunks() - 1, std::memory_order_relaxed);
    return true;
  }
  (previous != nullptr ? previous->next : all_) = &chunk;  // the system would not take it: it stays as it was
  if (next != nullptr) next->previous = &chunk;
  open(chunk);
  AddressMap::set(base, ChunkKind::kSlices);
  return false;
}

namespace {

constexpr size_t kStateGroup = 8;  // slices whose states fill a page of 4 KB, or four of them

// The groups of slices that have any of these.
uint64_t whole_groups(uint64_t slices) noexcept {
  uint64_t groups = 0;
  for (size_t at = 0; at < kSlicesInChunk; at += kStateGroup)
    if ((slices & mask_of(at, kStateGroup)) != 0) groups |= mask_of(at, kStateGroup);
  return groups;
}

// States of free slices are all FREE (S3), which is zero: their pages can go too.
void purge_states(ChunkHeader& chunk, uint64_t free_slices) noexcept {
  for (size_t at = 0; at < kSlicesInChunk; at += kStateGroup) {
    uint64_t group = mask_of(at, kStateGroup) & kAllSlices;
    if (group == 0 || (free_slices & group) != group) continue;
    os::purge(reinterpret_cast<void*>(start_of(chunk) + kLineStates + at * kLineStatesArea), kStateGroup * kLineStatesArea);
    os::purge(reinterpret_cast<void*>(start_of(chunk) + kGranuleStates + at * kGranuleStatesArea), kStateGroup * kGranuleStatesArea);
  }
}

}  // namespace

// What is due in one chunk goes back with the lock released: meanwhile these slices are neither free nor used.
size_t SlicePool::purge_chunk(ChunkHeader& chunk, bool all) noexcept {
  uint64_t due, claimed;
  {
    LockGuard guard(lock_);
    due = chunk.dirty_before | (all ? chunk.dirty : 0);
    chunk.dirty_before = all ? 0 : chunk.dirty;
    chunk.dirty = 0;
    if (due == 0) return 0;
    size_t bytes = static_cast<size_t>(std::popcount(due)) * kSlice;
    if (chunk.dirty_before == 0 && unmap_if_unused(chunk)) return bytes;
    claimed = whole_groups(due) & chunk.free;
    chunk.free &= ~claimed;
    if (chunk.free == 0) close(chunk);
  }
  uint64_t refused = 0;
  for (uint64_t left = due; left != 0;) {
    auto slice = static_cast<size_t>(std::countr_zero(left));
    auto n = static_cast<size_t>(std::countr_one(left >> slice));
    uint64_t mask = mask_of(slice, n);
    if (!os::purge(reinterpret_cast<void*>(start_of(chunk) + slice * kSlice), n * kSlice)) refused |= mask;
    left &= ~mask;
  }
  purge_states(chunk, claimed);
  LockGuard guard(lock_);
  if (chunk.free == 0) open(chunk);
  chunk.free |= claimed;
  chunk.dirty |= refused;  // still resident; tried again next round
  return static_cast<size_t>(std::popcount(due & ~refused)) * kSlice;
}

// Only a purge unmaps chunks and purges exclude each other, so the list can be followed without the pool's lock:
// new chunks go in at its front.
size_t SlicePool::purge(bool all) noexcept {
  LockGuard exclusive(purge_lock_);
  ChunkHeader* chunk;
  {
    LockGuard guard(lock_);
    chunk = all_;
  }
  size_t purged = 0;
  while (chunk != nullptr) {
    ChunkHeader* next = chunk->next;
    purged += purge_chunk(*chunk, all);
    chunk = next;
  }
  return purged;
}

SlicePool::Gauges SlicePool::gauges() noexcept {
  LockGuard guard(lock_);
  Gauges g{chunks(), 0, 0, most_used_, spaces_[0].bytes() + spaces_[1].bytes()};
  for (ChunkHeader* chunk = open_; chunk != nullptr; chunk = chunk->next_open) {
    g.free_slices += static_cast<size_t>(std::popcount(chunk->free));
    g.dirty_slices += static_cast<size_t>(std::popcount(chunk->dirty | chunk->dirty_before));
  }
  return g;
}

}  // namespace hm

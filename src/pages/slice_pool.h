// All regions of slices, for superblocks and large runs.  Some freed slices stay resident: HMALLOC_RETAIN, and for the
// decay time as many as the program keeps asking for (retention.h).  The thread that frees others gives them back to
// the system at once.  A chunk without a used slice is closed: it has no memory and is not in the address map.  A
// region without an open chunk is unmapped; of others, closed chunks are if addresses run out.
//
// For any thread.  There is one lock, held for a few instructions except while a chunk is prepared or closed.
//
// Invariants
//  P1  The chain of mapped regions is complete after every instruction.  A chunk is open if the address map says so,
//      otherwise closed if its region says so, otherwise held by one opener.
//  P2  A slice of an open chunk is free if `free` says so.  Free slices that were used since their memory was last given
//      back are dirty.  Slices that a purge in progress has taken out of `free` are in its journal.  Guards are none of these.
//  P3  All other lists and counts follow from these; the child of a fork recomputes them where it must.
#pragma once
#include "base/lock.h"
#include "pages/chunk_index.h"
#include "pages/huge_page_policy.h"
#include "pages/region.h"
#include "pages/retention.h"
#include "pages/slice_guards.h"

namespace hm {

class SlicePool {
 public:
  struct Run {
    Slice* first = nullptr;  // null: nothing found
    bool zeroed = false;     // every byte is known to be zero
  };

  // Finds a run of n <= kMaxRun slices in the open chunks; if there is none and `map` is set, opens a chunk.  Under
  // HMALLOC_LIMIT one slice, which only a superblock of small blocks takes, may come out of the reserve.
  static constexpr size_t kMaxRun = SliceGuards::kRunInAnyChunk;
  Run allocate(size_t n, bool map) noexcept;
  // Grows a run in place.
  bool extend(Slice& first, size_t old_slices, size_t new_slices) noexcept;
  // No descriptor may say any more that a block starts here.  If too much is free and resident now, gives back the surplus
  // of one chunk after another until it is not; at most what became surplus in this call or while another thread purged, and
  // a chunk more.
  void release(Slice& first, size_t n) noexcept;

  // The pool has found a usable superblock: the program does not only grow.  Relaxed: a hint.
  void count_reuse() noexcept { reuses_.fetch_add(1, std::memory_order_relaxed); }

  enum class Purge : uint8_t {
    kDue,      // what was freed a round ago; starts the next round
    kSurplus,  // all that was freed, except in huge pages that are in use
    kAll,      // all that was freed
  };
  // Purges chunks until `most` bytes have gone back.  Returns the number of bytes given back.
  size_t purge(Purge what, size_t most = SIZE_MAX) noexcept;

  // Before a request is refused: gives back the addresses of all closed chunks, as far as no open one needs the region.
  void unmap_closed() noexcept;

  // What is free and resident beyond what may stay.
  size_t surplus_bytes() noexcept;
  bool has_surplus() const noexcept { return surplus_slices() != 0; }  // a hint, like used()
  // Before a part of a slice in use is given back.  Otherwise the system would make one huge page again and fill the hole.
  void give_up_huge_page(const Slice& slice) noexcept;

  struct Gauges {
    size_t chunks, free_slices, dirty_slices, max_used_slices;
    size_t space;  // bytes mapped but in no open chunk
  };
  Gauges gauges() noexcept;
  // Slices in superblocks and runs; a hint for any thread.
  size_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
  // Whether the run that allocate would find is resident.  A hint.
  bool has_resident(size_t n) noexcept;
  // The number of open chunks; a hint for any thread.
  size_t chunks() const noexcept { return chunks_.load(std::memory_order_relaxed); }
  // Calls visit(Slice&) for every slice that starts a superblock or a run.  Holds the lock.
  template <class Visit>
  void for_each(Visit visit) noexcept;
  void repair(uint32_t before) noexcept;  // in the child of a fork
  bool is_valid() noexcept;

 private:
  friend struct Layout;
  static constexpr size_t kChunksPerOpener = 16;
  static constexpr size_t kMinPatience = 4, kMaxPatience = 16 * kSlicesInChunk;  // slices
  struct Place {
    Chunk* chunk;
    uint64_t starts, warm;
  };
  Place look_for(size_t n) noexcept;
  Run find(size_t n) noexcept;
  Run take(Chunk& chunk, size_t slice, size_t n) noexcept;
  Region* map_region(size_t chunks) noexcept;
  Region* map_absent_chunk() noexcept;
  Region* room(size_t n) noexcept;
  bool wants_huge_pages() noexcept;
  void set_huge(Region& region, size_t from, bool huge) noexcept;
  Chunk* prepare_chunk(size_t n) noexcept;
  void open(Chunk& chunk, bool huge, uint64_t cleared_ns) noexcept;
  void close(Chunk& chunk) noexcept;
  bool unmap(Region& region, uint8_t chunks) noexcept;
  void unmap(Region& region) noexcept;
  uint64_t take_due(Chunk& chunk, Purge what) noexcept;
  static uint64_t purge_slices(const Chunk& chunk, uint64_t slices, uint64_t refused_before) noexcept;
  size_t purge_chunk(Chunk& chunk, Purge what) noexcept;
  size_t purge_chunks(Purge what, size_t most) noexcept;
  size_t purge_surplus() noexcept;
  size_t patience(bool whole) const noexcept;
  size_t surplus_beyond_retention() const noexcept;  // under the lock
  void give_back_surplus(bool whole) noexcept;
  void ask_for(uint64_t slices) noexcept;
  static uint64_t fresh(const Chunk& chunk, uint64_t slices) noexcept {
    return slices & ~(chunk.dirty | chunk.dirty_before);
  }
  void count_resident(size_t more, size_t fewer) noexcept;
  void claim(Chunk& chunk, uint64_t slices) noexcept;
  void return_claimed() noexcept;

  bool is_open(const Chunk& chunk) const noexcept;
  bool is_in_hands(const Chunk& chunk) const noexcept;
  void undo_purge() noexcept;
  void rebuild() noexcept;
  void rebuild(Region& region) noexcept;
  void rebuild(Chunk& chunk) noexcept;
  bool is_valid(Region& region, size_t& open_chunks) noexcept;

  static size_t surplus_of(const Chunk& chunk) noexcept;
  size_t surplus_slices() const noexcept { return surplus_.load(std::memory_order_relaxed); }
  void recount(Chunk& chunk) noexcept;  // when its slices have changed; under the lock
  void link_surplus(Chunk& chunk) noexcept;
  void unlink_surplus(Chunk& chunk) noexcept;
  void goes_first(Chunk& chunk) noexcept;

  // For the child of a fork: what a thread has taken out of the pool and will put back.
  struct Opener {
    Lock lock;
    Chunk* chunk = nullptr;
  };
  struct Claimed {
    Chunk* chunk = nullptr;  // null: no purge is in progress
    uint64_t slices = 0;
  };

  // ---- changes with each slice that is taken or freed: two lines, and one of the index
  alignas(kLine) Lock lock_;
  std::atomic<size_t> used_{0};     // slices; relaxed, like surplus_
  std::atomic<size_t> surplus_{0};  // slices; relaxed: written under the lock, read without it as a hint
  size_t max_used_ = 0;
  size_t resident_ = 0;             // slices that are used or dirty, or being purged
  Chunk* first_surplus_ = nullptr;  // chunks with a surplus, in the order in which it is given back
  Chunk* last_surplus_ = nullptr;
  Retention retention_;
  ChunkIndex index_;  // open chunks with free slices
  // ---- changes with chunks and regions
  alignas(kLine) Lock purge_lock_;  // acquired before lock_, like the openers' locks
  Claimed claimed_;
  std::atomic<size_t> chunks_{0};
  size_t regions_ = 0;
  Region* mapped_ = nullptr;             // all regions
  Region* with_ready_chunks_ = nullptr;  // those with chunks that can be opened
  Chunk* all_ = nullptr;                 // open chunks
  Chunk* density_sample_ = nullptr;      // the chunk with small pages that was opened last
  bool dense_ = false;                   // whether the last sample was dense
  HugePagePolicy huge_page_policy_;
  std::atomic<size_t> next_turn_{0};  // of the openers; relaxed: their order does not matter
  Opener openers_[4];
  std::atomic<size_t> reuses_{0};  // since a chunk was opened
};

extern SlicePool slice_pool;

template <class Visit>
void SlicePool::for_each(Visit visit) noexcept {
  LockGuard guard(lock_);
  for (Chunk* chunk = all_; chunk != nullptr; chunk = chunk->next)
    for (size_t slice = chunk->index() == 0 ? kMetaSlices : 0; slice < kSlicesInChunk; ++slice) {
      Slice& descriptor = Slice::of(chunk->start() + slice * kSlice);
      SliceKind kind = descriptor.kind();
      if (kind == SliceKind::kBlocks || kind == SliceKind::kLarge) visit(descriptor);
    }
}

}  // namespace hm

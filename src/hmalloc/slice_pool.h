// All chunks of slices, for superblocks and large runs.  Slices that are freed stay resident for the decay time, then
// go back to the system; a chunk without a used slice is unmapped.
//
// Any thread; one lock, held for a few instructions except while a chunk is mapped or unmapped.
#pragma once
#include "base/lock.h"
#include "hmalloc/huge_pages.h"
#include "hmalloc/superblock.h"

namespace hm {

class SlicePool {
 public:
  struct Run {
    Superblock* first = nullptr;  // null: nothing found
    bool zeroed = false;          // every byte is known to be zero
  };

  // A run of n <= kMaxRun slices, from the chunks that exist, or (map) from a new one if need be.
  static constexpr size_t kMaxRun = kSlicesInChunk - kMetaSlices;
  Run allocate(size_t n, bool map) noexcept;
  // Grows a run in place.
  bool extend(Superblock& first, size_t old_slices, size_t new_slices) noexcept;
  // The descriptors must be cleared before.
  void release(Superblock& first, size_t n) noexcept;

  // Gives back what was freed a round ago and starts the next round; `all`: what was freed just now too.
  // Returns the bytes that went back.
  size_t purge(bool all) noexcept;

  struct Gauges {
    size_t chunks, free_slices, dirty_slices, most_used_slices;
    size_t space;  // bytes mapped for chunks to come
  };
  Gauges gauges() noexcept;
  // Chunks that exist, any thread, a hint.
  size_t chunks() const noexcept { return chunks_.load(std::memory_order_relaxed); }
  // Calls visit(Superblock&) for every slice that starts a superblock or a run.  Holds the lock.
  template <class Visit>
  void for_each(Visit visit) noexcept;
  template <class Visit>
  void for_each_lock(Visit visit) noexcept { visit(purge_lock_), visit(lock_); }  // in their order

 private:
  Run take(ChunkHeader& chunk, size_t slice, size_t n) noexcept;
  bool wants_huge_pages() noexcept;
  char* take_space(bool huge) noexcept;
  ChunkHeader* map_chunk(bool huge) noexcept;
  void open(ChunkHeader& chunk) noexcept;
  void close(ChunkHeader& chunk) noexcept;
  bool unmap_if_unused(ChunkHeader& chunk) noexcept;
  size_t purge_chunk(ChunkHeader& chunk, bool all) noexcept;

  Lock lock_;
  Lock purge_lock_;  // before lock_
  std::atomic<size_t> chunks_{0};
  size_t used_ = 0, most_used_ = 0;  // slices
  struct Space {  // mapped, for chunks to come
    char* begin = nullptr;
    char* end = nullptr;
    size_t bytes() const noexcept { return static_cast<size_t>(end - begin); }
  };
  Space spaces_[2];  // without and with huge pages
  HugePages huge_pages_;
  ChunkHeader* sample_ = nullptr;  // the newest chunk with small pages
  ChunkHeader* all_ = nullptr;
  ChunkHeader* open_ = nullptr;  // chunks with free slices
};

extern SlicePool slice_pool;

template <class Visit>
void SlicePool::for_each(Visit visit) noexcept {
  LockGuard guard(lock_);
  for (ChunkHeader* chunk = all_; chunk != nullptr; chunk = chunk->next)
    for (size_t slice = kMetaSlices; slice < kSlicesInChunk; ++slice) {
      uintptr_t chunk_start = align_down(address_of(chunk), kChunk);
      Superblock& sb = Superblock::of(chunk_start + slice * kSlice);
      SliceKind kind = sb.kind();
      if (kind == SliceKind::kBlocks || kind == SliceKind::kLarge) visit(sb);
    }
}

}  // namespace hm

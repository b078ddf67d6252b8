// Thread-local memory (sections 3.1 to 3.3 of the paper, completed): superblocks of 64 KB units in chunks of 2 MB, one
// bump pointer, two counts for each unit, coalescence free.  The fast paths are in the public header.
//
// Invariants
//  L1  The byte of a granule is 0 if no block starts here; 1..112 if a live one does, of that many granules; the same plus
//      kInCache if it waits in the owner's cache; kRemoteFreed if another thread freed it and the owner has not counted it.
//  L2  A byte in 1..112 is changed only by the thread that holds the block (the program must free it once), any other value
//      only by the owner.
//  L3  The owner writes allocated and freed of a unit; a cached block counts as allocated.  If they are equal, no byte of
//      the unit is set.
//  L4  The current unit is in no `empty` mask.
#pragma once
#include <hmalloc/hmalloc_local.h>

#include <atomic>

#include "base/sizes.h"
#include "pages/retention.h"

namespace hm {

struct SmallHeap;
class LocalHeap;

inline constexpr size_t kUnit = HM_LOCAL_UNIT_;
inline constexpr size_t kUnitsInChunk = kChunk / kUnit;
inline constexpr size_t kUnitGranules = kUnit / kGranule;
inline constexpr size_t kFirstUnit = 5;  // the ones before are the front of the chunk
inline constexpr uint8_t kInCache = HM_LOCAL_IN_CACHE_;
inline constexpr uint8_t kRemoteFreed = 254;
static_assert(HM_LOCAL_CHUNK_ == kChunk && HM_LOCAL_MAX / kGranule < kInCache && kInCache < kRemoteFreed);

// The front of a local chunk, between two guards that stop overflows out of the mapping below and underflows.
struct LocalChunk {
  char guard[kGuard];
  hm_local_unit_ units[kUnitsInChunk];         // the owner's
  std::atomic<LocalHeap*> owner;               // never changes: chunks stay with a heap, whatever its thread; any thread
  LocalChunk* next;                            // the owner's
  uint64_t empty;                              // bit i: unit i holds no block; the owner's
  uint64_t dirty, dirty_before;                // of these, in use since the last round of decay, or the one before
  uint64_t used;                               // whether any unit was used since the pages of `sizes` last went back
  std::atomic<uint8_t> remote[kUnitsInChunk];  // unit i has bytes kRemoteFreed; set by any thread
  // L1; searches read eight at a time.
  alignas(HM_LOCAL_SIZES_ - HM_LOCAL_COUNTS_) std::atomic<uint8_t> sizes[kChunk / kGranule + 8];
  alignas(kGuard) char second_guard[kGuard];

  static LocalChunk& of(uintptr_t address) noexcept { return *reinterpret_cast<LocalChunk*>(align_down(address, kChunk)); }
};
static_assert(offsetof(LocalChunk, units) == HM_LOCAL_COUNTS_ && offsetof(LocalChunk, sizes) == HM_LOCAL_SIZES_);
static_assert(sizeof(LocalChunk) == kFirstUnit * kUnit);

// What a thread without local memory has: no unit, no chunk that a free could hit, and caches that are both empty and
// full.
struct EmptyLocalCache {
  hm_local_cache_ tops;
  alignas(HM_LOCAL_SLOTS_ * sizeof(void*)) void* stack[HM_LOCAL_SLOTS_];
};
extern constinit EmptyLocalCache empty_local_cache;
inline constexpr hm_local_place_ kNoPlace{0, 0, 0, 1, nullptr, &empty_local_cache.tops};

class LocalHeap {
 public:
  constexpr explicit LocalHeap(SmallHeap* heap) noexcept : heap_(heap) {}

  void* allocate_slow(size_t size) noexcept;  // null if there is no memory
  void coalesce(LocalChunk& chunk, size_t unit) noexcept;
  // The owner's free of a block that is in no cache.
  void count_free(LocalChunk& chunk, size_t granule) noexcept;
  // Counts what other threads freed in a unit.
  void count_remote_frees(LocalChunk& chunk, size_t unit) noexcept;
  // Gives pages of empty units back to the system: units that have been empty for a round, or all, the current one too.
  // (What exceeds the retention is given back at once, by the free that empties a unit.)
  void release(bool all) noexcept;
  // Called by any thread that frees the first block of a unit since the owner counted: there may be something to release.
  void disturb() noexcept { disturbed_.store(true, std::memory_order_relaxed); }
  bool take_disturbed() noexcept { return disturbed_.exchange(false, std::memory_order_relaxed); }
  // At thread exit, and when the heap is inherited: moves the bump state between thread and heap.
  void park() noexcept;
  void resume() noexcept;

  const SmallHeap* heap() const noexcept { return heap_; }
  LocalChunk* chunks() const noexcept { return chunks_.load(std::memory_order_acquire); }  // statistics read it too
  bool is_valid() noexcept;

 private:
  bool next_region(size_t least) noexcept;
  bool use_empty_unit() noexcept;
  bool use_hole(size_t least) noexcept;
  bool use_hole_in(LocalChunk& chunk, size_t unit, uintptr_t from, size_t least) noexcept;
  bool is_sparse(LocalChunk& chunk, size_t unit) noexcept;
  bool map_chunk() noexcept;
  bool map_cache() noexcept;
  void flush_cache() noexcept;
  void leave_empty_unit() noexcept;
  size_t purge_units(LocalChunk& chunk, bool all) noexcept;
  void purge_all_units(bool all) noexcept;
  void give_back_surplus() noexcept;
  void use(LocalChunk& chunk, size_t unit, uintptr_t from, uintptr_t to) noexcept;
  // The bump state: it is with the thread that uses the heap, or parked.
  hm_local_place_& place() noexcept;

  SmallHeap* heap_;
  std::atomic<LocalChunk*> chunks_{nullptr};  // written by the owner; a chunk is complete before it is listed
  uint32_t count_ = 0;
  bool in_holes_ = false;  // the bump region is a hole; the unit may have more holes behind it
  std::atomic<bool> disturbed_{false};
  Retention retention_;
  LocalChunk* hole_chunk_ = nullptr;  // where the next search for holes starts
  uint32_t hole_unit_ = kFirstUnit;
  uint32_t surplus_units_ = 0;  // empty and resident
  hm_local_place_ parked_ = kNoPlace;
};

// Frees a local block, for any thread and any entry point.  Ends the program if there is no such block.  True if this
// is the first free in its unit that the owner, another heap, does not know of.
bool free_local(void* block, const char* function) noexcept;
// Bytes of the live local block at this address, or 0 if there is none.
size_t local_size(const void* block) noexcept;

}  // namespace hm

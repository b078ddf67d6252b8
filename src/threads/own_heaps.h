// Heaps of the program's own (hm_heap_create): all blocks of one are freed at once when it is destroyed, and until then it
// shares no memory with others.
//
// Whoever allocates has the heap's lock.  There are no caches: a small block is taken from a superblock one at a time, by any
// thread, and is OWN (core/block_state.h).  So free never takes it for one that a cache could hold, and comes to a slow path,
// which makes it FREE, without the lock.  Large blocks are in lists, which free takes them out of, under the lock.  So nothing
// of a heap ever belongs to a thread, and malloc and free know nothing of heaps.
//
// A heap lies in a chunk of its own kind in the address map, so anything may be asked whether it is a heap.  What the program
// has is its address, and in the low bits the number of its life: what was destroyed is known, until the place has served
// kLives heaps more.
//
// Invariants
//  O1  A superblock of a heap is current in it, in one of its queues, or with the thread that has the heap's lock, or that has
//      taken the superblock out to free all.  Only such a thread sweeps it (S1).  It never goes to the pool.
//  O2  Each large block of a heap is in its list, between the end of its allocation and the beginning of its free.
//  O3  A place is free (in the list), or taken: by a heap that is live, or by one that is being made or destroyed.
#pragma once
#include "base/intrusive_list.h"
#include "core/superblock_pool.h"
#include "large/extent.h"
#include "large/runs.h"

namespace hm {

inline constexpr size_t kOwnHeapPlace = 2 * kKiB;

struct alignas(kOwnHeapPlace) OwnHeap : Shelf {
  struct Gauges {
    uint64_t blocks, bytes, held;  // bytes: of these blocks; held: of superblocks and large blocks
  };

  // A block of class c, which is OWN.  Null if there is no memory.  opened: it came from another superblock than the last one.
  void* allocate(ClassIndex c, bool& opened) noexcept;
  // A large block that was just allocated, or is about to be freed.  The second says whether it was the heap's.
  void add(void* block) noexcept;
  template <class Descriptor>
  bool remove(Descriptor& large) noexcept {
    LockGuard guard(lock);
    if (large.heap != this) return false;
    take_off(large);
    return true;
  }
  // Superblocks without a block go to their chunks; what is current waits with the others, so that a pass over holes sees it.
  void release_empty() noexcept;
  Gauges gauges() noexcept;  // exact, as long as no thread allocates or frees
  bool is_valid() noexcept;

  // For its destruction, until there is none: a large block, and a superblock that the caller then holds.
  void* any_large() noexcept;
  Superblock* take_out() noexcept;

  Lock lock;
  // ---- under the lock
  std::array<Superblock*, kClasses> current{};
  std::array<uint32_t, kClasses> search_at{};  // so many in the queue: all are looked at before another is opened
  LargeRun* runs = nullptr;
  Extent* extents = nullptr;
  // ---- under the lock of all heaps
  OwnHeap* next_free = nullptr;
  uint32_t lives = 0;  // so far
  bool taken = false;
  // ----
  // The low bits of its handle; 0: it is not live.  Relaxed: who uses the heap has got it from its creator.
  uint32_t name() const noexcept { return name_.load(std::memory_order_relaxed); }
  void set_name(uint32_t name) noexcept { name_.store(name, std::memory_order_relaxed); }

  void relink() noexcept;  // in the child of a fork, if another thread had the lock

 private:
  LargeRun*& list_of(const LargeRun&) noexcept { return runs; }
  Extent*& list_of(const Extent&) noexcept { return extents; }
  template <class Descriptor>
  void take_off(Descriptor& large) noexcept {
    unlink(list_of(large), large, &Descriptor::next_own, &Descriptor::previous_own);
    large.heap = nullptr;
  }
  friend struct Layout;
  Superblock* next_superblock(ClassIndex c) noexcept;
  void shelve(ClassIndex c) noexcept;
  template <class Visit>
  void for_each_superblock(Visit visit) noexcept;
  std::atomic<uint32_t> name_{0};
};
static_assert(sizeof(OwnHeap) == kOwnHeapPlace);

// The heap that a live block belongs to, or null.
inline OwnHeap* heap_of(const Superblock& sb) noexcept {
  return belongs_to_own_heap(sb) ? static_cast<OwnHeap*>(sb.owner()) : nullptr;
}

class OwnHeaps {
 public:
  static constexpr uint32_t kLives = kOwnHeapPlace - 1;

  OwnHeap* create() noexcept;  // null if there is no memory
  static const void* handle_of(const OwnHeap& heap) noexcept;
  // For any address: the live heap with this handle, or null.
  static OwnHeap* find(const void* handle) noexcept;
  // The same, and it is not live from now on; the caller frees its blocks, and then its place.
  OwnHeap* end(const void* handle) noexcept;
  void release(OwnHeap& heap) noexcept;

  // Calls visit(heap) for each live heap, under the heap's lock.
  template <class Visit>
  void for_each(Visit visit) noexcept {
    for_each_place([&](OwnHeap& heap) {
      LockGuard guard(heap.lock);
      if (heap.name() != 0) visit(heap);
    });
  }
  size_t mapped() noexcept;               // bytes
  size_t places() noexcept;               // that were ever taken
  void repair(uint32_t before) noexcept;  // in the child of a fork
  bool is_valid() noexcept;

 private:
  friend struct Layout;
  // In a chunk, between guards; it stays.  The place in front of the heaps has this.
  struct Slab {
    static constexpr size_t kPlaces = (kChunk - 2 * kGuard) / kOwnHeapPlace - 1;
    Slab* next = nullptr;
    size_t used = 0;  // places that were ever taken; under the lock
    OwnHeap* heaps() noexcept { return reinterpret_cast<OwnHeap*>(reinterpret_cast<char*>(this) + kOwnHeapPlace); }
  };
  Slab* newest() noexcept {
    LockGuard guard(lock_);
    return slabs_;
  }
  size_t used_of(const Slab& slab) noexcept {
    LockGuard guard(lock_);
    return slab.used;
  }
  template <class Visit>
  void for_each_place(Visit visit) noexcept {
    for (Slab* slab = newest(); slab != nullptr; slab = slab->next)
      for (size_t i = 0, used = used_of(*slab); i < used; ++i) visit(slab->heaps()[i]);
  }
  bool add_slab() noexcept;
  OwnHeap* take_place() noexcept;

  Lock lock_;
  Slab* slabs_ = nullptr;
  OwnHeap* free_ = nullptr;  // places that have served
};
extern OwnHeaps own_heaps;

}  // namespace hm

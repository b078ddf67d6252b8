#include "threads/own_heaps.h"

#include <new>

#include "base/os_pages.h"

namespace hm {

constinit OwnHeaps own_heaps;

namespace {

constexpr size_t kProbes = 8;  // full superblocks that are looked at before another is opened

// In the child of a fork: the chain is complete, the ways back may not be.
template <class Descriptor>
void relink_list(Descriptor* first) noexcept {
  Descriptor* previous = nullptr;
  for (Descriptor* each = first; each != nullptr; each = each->next_own) each->previous_own = std::exchange(previous, each);
}

template <class Descriptor>
bool list_is_valid(const Descriptor* first, const OwnHeap& heap) noexcept {
  const Descriptor* previous = nullptr;
  for (const Descriptor* each = first; each != nullptr; previous = each, each = each->next_own)
    if (each->heap != &heap || each->previous_own != previous) return false;
  return true;
}

}  // namespace

void* OwnHeap::allocate(ClassIndex c, bool& opened) noexcept {
  LockGuard guard(lock);
  Superblock*& sb = current[index_of(c)];
  for (;;) {
    if (sb == nullptr) {
      opened = true;
      sb = next_superblock(c);
      if (sb == nullptr) return nullptr;
    }
    if (void* block = sb->take_next()) return block;
    shelve(c);
  }
}

// Its own that have room, the oldest first, a few of them; all before it has grown by an eighth since that was in vain.  So
// what it has of a class is what bounds the pool, too (docs/design.md, "Footprint").
Superblock* OwnHeap::next_superblock(ClassIndex c) noexcept {
  SuperblockQueue& full = queues[index_of(c)];
  size_t count = full.count();
  bool all = count >= search_at[index_of(c)];
  Superblock* sb = pop_usable(full, all ? SIZE_MAX : kProbes, min_free_blocks(c), this);
  if (sb == nullptr) {
    if (all) search_at[index_of(c)] = static_cast<uint32_t>(count + count / 8 + 1);
    SlicePool::Run run = superblock_pool.fresh_run(slices_of(c));
    if (run.first != nullptr) {
      sb = &Superblock::of(*run.first);
      sb->format(c);
    } else {
      sb = pop_usable(full, SIZE_MAX, 1, this);
    }
  }
  if (sb == nullptr) return nullptr;
  sb->watch(false);
  sb->begin_sweep(this);
  return sb;
}

// From now on whoever frees its last block gives it back to its chunk.
void OwnHeap::shelve(ClassIndex c) noexcept {
  Superblock* sb = std::exchange(current[index_of(c)], nullptr);
  if (sb == nullptr) return;
  keep_order();  // a fork that cuts another thread off here loses it
  sb->watch(true);
  queues[index_of(c)].push(*sb);
}

void OwnHeap::release_empty() noexcept {
  for (size_t c = 0; c < kClasses; ++c) {
    shelve(ClassIndex(c));
    release_free(queues[c], SIZE_MAX);
  }
}

void OwnHeap::add(void* block) noexcept {
  auto link = [this](auto& large) {
    using Descriptor = std::remove_reference_t<decltype(large)>;
    large.heap = this;
    link_first(list_of(large), large, &Descriptor::next_own, &Descriptor::previous_own);
  };
  LockGuard guard(lock);
  bool is_run = AddressMap::kind(address_of(block)) == ChunkKind::kSlices;
  is_run ? link(LargeRun::of(Slice::of(address_of(block)))) : link(*huge_extent(block));
}

// One that is not live is lost: another thread was resizing it when this process was forked.
void* OwnHeap::any_large() noexcept {
  LockGuard guard(lock);
  if (runs != nullptr) return runs->base();
  while (extents != nullptr && !extents->is_live()) take_off(*extents);
  return extents != nullptr ? extents->start() + extents->lead : nullptr;
}

Superblock* OwnHeap::take_out() noexcept {
  LockGuard guard(lock);
  for (size_t c = 0; c < kClasses; ++c) {
    shelve(ClassIndex(c));
    if (Superblock* sb = queues[c].pop()) return sb;
  }
  return nullptr;
}

template <class Visit>
void OwnHeap::for_each_superblock(Visit visit) noexcept {
  for (size_t c = 0; c < kClasses; ++c) {
    if (current[c] != nullptr) visit(*current[c]);
    queues[c].for_each(visit);
  }
}

OwnHeap::Gauges OwnHeap::gauges() noexcept {
  LockGuard guard(lock);
  Gauges g{};
  for_each_superblock([&](const Superblock& sb) {
    size_t used = sb.blocks - sb.free_blocks();
    g.blocks += used;
    g.bytes += used * sb.block_size;
    g.held += sb.bytes();
  });
  auto count = [&](size_t bytes, size_t held) {
    ++g.blocks;
    g.bytes += bytes;
    g.held += held;
  };
  for (LargeRun* run = runs; run != nullptr; run = run->next_own) count(large_capacity(*run), large_capacity(*run));
  for (Extent* each = extents; each != nullptr; each = each->next_own) count(huge_capacity(*each), each->taken());
  return g;
}

bool OwnHeap::is_valid() noexcept {
  LockGuard guard(lock);
  bool sound = own && list_is_valid(runs, *this) && list_is_valid(extents, *this);
  for_each_superblock([&](const Superblock& sb) { sound = sound && sb.is_valid() && sb.owner() == this; });
  for (SuperblockQueue& queue : queues) sound = sound && queue.is_valid();
  return sound;
}

void OwnHeap::relink() noexcept {
  relink_list(runs);
  relink_list(extents);
}

// ---- all heaps

const void* OwnHeaps::handle_of(const OwnHeap& heap) noexcept { return reinterpret_cast<const char*>(&heap) + heap.name(); }

OwnHeap* OwnHeaps::find(const void* handle) noexcept {
  uintptr_t address = address_of(handle), place = align_down(address, kOwnHeapPlace), offset = place % kChunk;
  if (AddressMap::kind(address) != ChunkKind::kOwnHeaps) return nullptr;
  if (offset <= kGuard || offset >= kChunk - kGuard) return nullptr;
  auto* heap = reinterpret_cast<OwnHeap*>(place);
  uint32_t name = heap->name();
  return name != 0 && name == address - place ? heap : nullptr;
}

bool OwnHeaps::add_slab() noexcept {
  auto* chunk = static_cast<char*>(os::map(kChunk, kChunk));
  if (chunk == nullptr) return false;
  os::prefer_huge_pages(chunk, kChunk, false);  // one heap needs no 2 MB
  os::guard(chunk, kGuard);
  os::guard(chunk + kChunk - kGuard, kGuard);
  auto* slab = new (chunk + kGuard) Slab;
  slab->next = slabs_;
  keep_order();
  slabs_ = slab;
  AddressMap::set(chunk, ChunkKind::kOwnHeaps);
  return true;
}

// Under the lock.  What has served last is the likeliest to be warm.
OwnHeap* OwnHeaps::take_place() noexcept {
  if (OwnHeap* heap = free_) {
    free_ = heap->next_free;
    return heap;
  }
  if ((slabs_ == nullptr || slabs_->used == Slab::kPlaces) && !add_slab()) return nullptr;
  auto* heap = new (&slabs_->heaps()[slabs_->used]) OwnHeap;
  heap->own = true;
  keep_order();
  ++slabs_->used;
  return heap;
}

OwnHeap* OwnHeaps::create() noexcept {
  LockGuard guard(lock_);
  OwnHeap* heap = take_place();
  if (heap == nullptr) return nullptr;
  heap->taken = true;
  heap->search_at.fill(0);
  heap->set_name(1 + heap->lives++ % kLives);
  return heap;
}

OwnHeap* OwnHeaps::end(const void* handle) noexcept {
  LockGuard guard(lock_);
  OwnHeap* heap = find(handle);
  if (heap != nullptr) heap->set_name(0);
  return heap;
}

void OwnHeaps::release(OwnHeap& heap) noexcept {
  LockGuard guard(lock_);
  heap.next_free = free_;
  heap.taken = false;
  keep_order();
  free_ = &heap;
}

size_t OwnHeaps::mapped() noexcept {
  size_t slabs = 0;
  for (Slab* slab = newest(); slab != nullptr; slab = slab->next) ++slabs;
  return slabs * kChunk;
}

size_t OwnHeaps::places() noexcept {
  size_t places = 0;
  for_each_place([&](const OwnHeap&) { ++places; });
  return places;
}

// A heap that another thread was making or destroying is lost with what it has.
void OwnHeaps::repair(uint32_t before) noexcept {
  bool broken = false;
  repair_after_fork(lock_, before, [&] { broken = true; });
  if (broken) free_ = nullptr;
  for (Slab* slab = slabs_; slab != nullptr; slab = slab->next)
    for (size_t i = 0; i < slab->used; ++i) {
      OwnHeap& heap = slab->heaps()[i];
      for (SuperblockQueue& queue : heap.queues) repair_after_fork(queue.lock(), before, [&] { queue.repair(); });
      repair_after_fork(heap.lock, before, [&] { heap.relink(); });
      if (broken && !heap.taken) heap.next_free = std::exchange(free_, &heap);
    }
}

bool OwnHeaps::is_valid() noexcept {
  bool sound = true;
  for_each_place([&](OwnHeap& heap) { sound = sound && heap.is_valid(); });
  LockGuard guard(lock_);
  for (OwnHeap* heap = free_; heap != nullptr; heap = heap->next_free) sound = sound && !heap->taken;
  return sound;
}

}  // namespace hm

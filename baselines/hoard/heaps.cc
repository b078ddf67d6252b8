#include "baselines/hoard/heaps.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <new>

extern char** environ;

namespace hm::hoard {

constinit Heaps heaps;
constinit thread_local Heap* Heaps::mine_ = nullptr;

namespace {

constexpr uint64_t kTransfersToALook = 16;  // transfers between reads of the u of all heaps, which cost a cache line of each

}  // namespace

// IFUNC resolvers of the program may allocate before the C library has the environment.  S and b cannot change once
// there is a superblock, so there is none until the options are known: such requests are large objects.
bool Heaps::start(bool even_without_environment) noexcept {
  LockGuard guard(start_lock);
  if (count_ > 0) return true;
  if (environ == nullptr && !even_without_environment) return false;
  read_options();
  classes.compute(options.superblock - sizeof(Superblock), options.class_base);
  new (&superblocks) Regions(options.superblock);
  count_ = options.heaps;
  return true;
}

// "A simple hash function to map thread id's to per-processor heaps."  The kernel numbers threads consecutively, so
// threads that were started together have different heaps, if there are enough.
Heap* Heaps::choose() noexcept {
  if (!start(false)) return nullptr;
  return mine_ = &heaps_[1 + static_cast<size_t>(syscall(SYS_gettid)) % count_];
}

// The emptiest superblock of the global heap comes first: it brings the fewest objects along that can be falsely
// shared, and lasts longest.  It must come before any recycled one; otherwise the class would have more superblocks
// than its own heaps ever needed at a time, and memory would be unbounded (docs/baselines.md, Hoard).
Superblock* Heaps::find_or_recycle(Heap& heap, size_t size_class) noexcept {
  Heap* from = &global();
  Superblock* s = from->emptiest(size_class);
  bool other_class = s == nullptr;
  if (other_class) s = (from = &heap)->completely_empty();
  if (s == nullptr) s = (from = &global())->completely_empty();
  if (s == nullptr) return nullptr;
  from->remove(*s);
  if (other_class) s->dedicate(size_class);
  traffic.from_global += from == &global();
  traffic.recycled += other_class;
  traffic.objects_that_came_along += s->in_use();
  s->came_to(&heap);
  return s;
}

Superblock* Heaps::acquire(Heap& heap, size_t size_class) noexcept {
  LockGuard guard(global().lock);
  Superblock* s = find_or_recycle(heap, size_class);
  bool look = traffic.from_global % kTransfersToALook == 0;
  if (s == nullptr) {
    look = true;
    void* memory = superblocks.take();
    if (memory == nullptr) return nullptr;
    s = new (memory) Superblock;
    s->dedicate(size_class);
    ++traffic.superblocks;
  }
  heap.insert(*s);
  if (look) note_peaks();
  return s;
}

// Fig. 2 transfers one superblock, which almost suffices with one size class.  With several, malloc may have added one
// of each since the last free, so here as many are transferred as necessary.  There always is one that is more than f
// empty: if all were at least 1 - f full, so would be the heap.
void Heaps::transfer_to_global(Heap& heap) noexcept {
  LockGuard guard(global().lock);
  do {
    Superblock* s = heap.emptiest();
    heap.remove(*s);
    s->left(&heap);
    global().insert(*s);
    ++traffic.to_global;
  } while (heap.crosses_emptiness_threshold());
}

void Heaps::count_large_object() noexcept {
  LockGuard guard(global().lock);
  ++traffic.large_objects;
  note_peaks();
}

size_t Heaps::in_use() noexcept {
  size_t bytes = 0;
  for (size_t i = 0; i <= count_; ++i) bytes += heaps_[i].u();
  return bytes;
}

void Heaps::note_peaks() noexcept {
  size_t large_bytes = large.allocated();
  size_t u = in_use() + large_bytes, a = traffic.superblocks * options.superblock + large_bytes;
  if (u > traffic.max_in_use) traffic.max_in_use = u;
  if (a > traffic.max_allocated) traffic.max_allocated = a;
}

}  // namespace hm::hoard

#include "baselines/one_lock/one_lock.h"

#include <array>

#include "baselines/common/fork_locks.h"
#include "baselines/common/large_blocks.h"
#include "baselines/common/regions.h"

namespace hm::one_lock {
namespace {

constexpr size_t kRegion = 64 * kKiB;
constexpr size_t kSmallest = 16, kLargest = 32 * kKiB;
constexpr size_t kClasses = std::countr_zero(kLargest / kSmallest) + 1;

struct FreeBlock {
  FreeBlock* next;
};

// Lies at the start of each region.  The blocks follow from the next multiple of their size, so each is aligned to it.
struct Region {
  size_t block_size;
};

struct Heap {
  Lock lock;
  std::array<FreeBlock*, kClasses> free{};
  Regions regions{kRegion};
  LargeBlocks large;
  size_t cut_bytes = 0;    // of all small blocks
  size_t small_bytes = 0;  // of those that the program holds
  uint64_t calls = 0;
};
constinit Heap heap;
constinit ForkLocks<4> held_for_fork;

constexpr size_t class_of(size_t size) { return size <= kSmallest ? 0 : std::bit_width((size - 1) / kSmallest); }
constexpr size_t size_of(size_t c) { return kSmallest << c; }
static_assert(class_of(16) == 0 && class_of(17) == 1 && class_of(32) == 1 && class_of(kLargest) == kClasses - 1);

size_t small_size(const void* block) noexcept { return Regions::of<Region>(block, kRegion)->block_size; }

// Ends the program if the address cannot be a block's.
size_t checked_small_size(const void* block, const char* function) noexcept {
  bool ours = AddressMap::kind(address_of(block)) == ChunkKind::kRegions && address_of(block) % kRegion != 0;
  size_t size = ours ? small_size(block) : 0;
  if (size == 0) die_on_misuse(function, block, "not a block of one_lock");
  if (address_of(block) % size != 0) die_on_misuse(function, block, "points into a block, not to its start");
  return size;
}

bool cut_region(size_t c) noexcept {
  auto* region = static_cast<Region*>(heap.regions.take());
  if (region == nullptr) return false;
  region->block_size = size_of(c);
  char* end = reinterpret_cast<char*>(region) + kRegion;
  // From the end, so that the list runs upwards; the first block's place holds the region's header.
  for (char* block = end - size_of(c); block > reinterpret_cast<char*>(region); block -= size_of(c)) {
    auto* free = reinterpret_cast<FreeBlock*>(block);
    free->next = heap.free[c];
    heap.free[c] = free;
    heap.cut_bytes += size_of(c);
  }
  return true;
}

void* allocate_small(size_t c) noexcept {
  LockGuard guard(heap.lock);
  ++heap.calls;
  if (heap.free[c] == nullptr && !cut_region(c)) return nullptr;
  FreeBlock* block = heap.free[c];
  heap.free[c] = block->next;
  heap.small_bytes += size_of(c);
  return block;
}

void* allocate_large(size_t size, size_t alignment) noexcept {
  LockGuard guard(heap.lock);
  ++heap.calls;
  return heap.large.allocate(size, alignment);
}

}  // namespace

void* allocate(size_t size) noexcept {
  return size <= kLargest ? allocate_small(class_of(size)) : allocate_large(size, kGranule);
}

// A block is aligned to its size.
void* allocate_aligned(size_t alignment, size_t size) noexcept {
  size_t least = size > alignment ? size : alignment;
  return least <= kLargest ? allocate_small(class_of(least)) : allocate_large(size, alignment);
}

void deallocate(void* block, const char* function) noexcept {
  LockGuard guard(heap.lock);
  ++heap.calls;
  if (LargeBlocks::holds(block)) return heap.large.free(block, function);
  size_t size = checked_small_size(block, function), c = class_of(size);
  if (heap.free[c] == block) die_on_misuse(function, block, "freed already");
  auto* free = static_cast<FreeBlock*>(block);
  free->next = heap.free[c];
  heap.free[c] = free;
  heap.small_bytes -= size;
}

size_t usable_size(const void* block, const char* function) noexcept {
  if (LargeBlocks::holds(block)) return heap.large.usable_size(block, function);
  return checked_small_size(block, function);
}

bool comes_zeroed(const void* block) noexcept { return LargeBlocks::holds(block) && heap.large.comes_zeroed(block); }

void* resize(void* block, size_t size) noexcept {
  if (!LargeBlocks::holds(block)) return nullptr;
  LockGuard guard(heap.lock);
  return heap.large.resize(block, size);
}

Usage usage() noexcept {
  LockGuard guard(heap.lock);
  size_t mapped = heap.regions.taken() * kRegion + heap.large.mapped();
  size_t allocated = heap.small_bytes + heap.large.allocated();
  return {.mapped = mapped,
          .resident = mapped,
          .active = mapped,
          .allocated = allocated,
          .cached = 0,
          .retained = mapped - allocated};
}

void write_counters(FdWriter& text) noexcept {
  LockGuard guard(heap.lock);
  text << ",\"calls\":" << heap.calls;
}

bool is_valid() noexcept {
  LockGuard guard(heap.lock);
  size_t free_bytes = 0;
  for (size_t c = 0; c < kClasses; ++c)
    for (FreeBlock* block = heap.free[c]; block != nullptr; block = block->next) {
      free_bytes += size_of(c);
      if (free_bytes > heap.cut_bytes || small_size(block) != size_of(c)) return false;
    }
  return free_bytes + heap.small_bytes == heap.cut_bytes && heap.large.is_valid();
}

Lock& the_lock() noexcept { return heap.lock; }

void start() noexcept {}

void before_fork() noexcept {
  held_for_fork.take(heap.lock);
  held_for_fork.take(heap.regions.lock());
  held_for_fork.take(heap.large.lock());
}
void after_fork_in_parent() noexcept { held_for_fork.release(); }

// The thread has a new id in the child; the locks that it holds must name that.
void after_fork_in_child() noexcept {
  uint32_t before = rename_thread();
  for (Lock* lock : {&heap.lock, &heap.regions.lock(), &heap.large.lock()}) lock->adopt_after_fork(before);
  held_for_fork.release();
}

}  // namespace hm::one_lock

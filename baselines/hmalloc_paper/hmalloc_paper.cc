#include "baselines/hmalloc_paper/hmalloc_paper.h"

namespace hm::hmalloc_paper {

// Within a block that is large enough for any aligned start.  A multiple of 32 differs from the start of every plain
// block, which lies 16 behind a multiple of 64.
void* allocate_aligned(size_t alignment, size_t size) noexcept {
  size_t bytes = block_size(size + alignment - sizeof(Flag));
  if (bytes >= kSharedLimit) return large_blocks.allocate(size, alignment);
  void* block = allocate_block(size_to_class(bytes));
  return block == nullptr ? nullptr : reinterpret_cast<void*>(align_up(address_of(block), alignment));
}

void* allocate_from_fallback(uint32_t size_class) noexcept {
  LockGuard guard(fallback.lock);
  return fallback.heap.shared[size_class].allocate(size_class, fallback.heap.counts);
}

void* allocate_local_from_fallback(size_t size) noexcept {
  LockGuard guard(fallback.lock);
  return fallback.heap.local.allocate(size);
}

void deallocate_other(void* block, Superblock* superblock, const char* function) noexcept {
  if (LargeBlocks::holds(block)) return large_blocks.free(block, function);
  bool local = superblock != nullptr && superblock->kind == SuperblockKind::kLocal;
  die_on_misuse(function, block, local ? "a local block: hmp_local_free is for it" : "not a block of hmalloc_paper");
}

void deallocate_other_local(void* block, Superblock* superblock, const char* function) noexcept {
  if (LargeBlocks::holds(block)) return large_blocks.free(block, function);
  if (superblock == nullptr || superblock->kind != SuperblockKind::kLocal)
    die_on_misuse(function, block, "not a local block of hmalloc_paper");
  auto& local = reinterpret_cast<LocalSuperblock&>(*superblock);
  LockGuard guard(fallback.lock);
  // The heap of a thread that has ended may by now be another thread's, so a block of it is lost.
  if (local.owner == &fallback.heap.local) local.owner->free(block, local, function);
}

size_t usable_size(const void* block, const char* function) noexcept {
  if (LargeBlocks::holds(block)) return large_blocks.usable_size(block, function);
  Superblock* superblock = Superblock::of(block);
  if (superblock == nullptr || superblock->kind != SuperblockKind::kShared)
    die_on_misuse(function, block, "not a shared block of hmalloc_paper");
  auto& shared = reinterpret_cast<SharedSuperblock&>(*superblock);
  Flag* flag = shared.flag_of(block);
  if (flag == nullptr) die_on_misuse(function, block, "points into a block, not to its start");
  return address_of(flag) + shared.object_size - address_of(block);
}

bool comes_zeroed(const void* block) noexcept { return LargeBlocks::holds(block) && large_blocks.comes_zeroed(block); }

void* resize(void* block, size_t size) noexcept {
  return LargeBlocks::holds(block) ? large_blocks.resize(block, size) : nullptr;
}

// The paper counts no live blocks, so a whole superblock counts as the program's.
Usage usage() noexcept {
  size_t superblocks = first_superblocks.taken() * kFirstSuperblock + next_superblocks.taken() * kNextSuperblock;
  size_t allocated = superblocks + large_blocks.allocated();
  size_t mapped = superblocks + large_blocks.mapped();
  return {.mapped = mapped,
          .resident = mapped,
          .active = mapped,
          .allocated = allocated,
          .cached = 0,
          .retained = mapped - allocated};
}

void write_counters(FdWriter& text) noexcept {
  uint64_t sums[8] = {};
  for_each_heap([&sums](Heap& heap) {
    const Count* counts[] = {&heap.counts.superblocks_64k, &heap.counts.superblocks_4m, &heap.counts.ssl_walks,
                             &heap.counts.ssl_walk_steps,  &heap.counts.ssl_walk_hits,  &heap.local.superblocks_64k,
                             &heap.local.superblocks_4m,   &heap.local.lsl_walk_steps};
    for (size_t i = 0; i < 8; ++i) sums[i] += counts[i]->read();
  });
  LockGuard guard(registry.lock);
  text << ",\"heaps\":" << uint64_t{registry.heaps} << ",\"inherited\":" << registry.inherited
       << ",\"superblocks_64k\":" << sums[0] << ",\"superblocks_4m\":" << sums[1] << ",\"ssl_walks\":" << sums[2]
       << ",\"ssl_walk_steps\":" << sums[3] << ",\"ssl_walk_hits\":" << sums[4] << ",\"local_superblocks_64k\":" << sums[5]
       << ",\"local_superblocks_4m\":" << sums[6] << ",\"lsl_walk_steps\":" << sums[7];
}

bool is_valid() noexcept {
  bool valid = true;
  for_each_heap([&valid](Heap& heap) { valid = valid && heap.is_valid(); });
  return valid && large_blocks.is_valid();
}

void start() noexcept {}

}  // namespace hm::hmalloc_paper

// Fig. 2 of the paper, line by line.
#include "baselines/hoard/hoard.h"

#include "baselines/hoard/heaps.h"

namespace hm::hoard {
namespace {

#if defined(HM_BASELINE_CHECKS) || !defined(NDEBUG)
inline constexpr bool kChecks = true;  // invariant 3 after every operation
#else
inline constexpr bool kChecks = false;
#endif

// function: the entry point, for the message.
void check(bool invariant_3, const char* function, const void* block) noexcept {
  if (kChecks && !invariant_3) die_on_misuse(function, block, "the heap is too empty now");
}

void* allocate_large(size_t size, size_t alignment) noexcept {
  void* block = heaps.large.allocate(size, alignment);
  if (block != nullptr) heaps.count_large_object();
  return block;
}

void* allocate_small(Heap& heap, size_t size_class) noexcept {
  LockGuard guard(heap.lock);                           //  3
  Superblock* s = heap.fullest_with_space(size_class);  //  4
  if (s == nullptr) {                                   //  5
    s = heaps.acquire(heap, size_class);                //  6 to 14
    if (s == nullptr) return nullptr;
  }
  void* block = heap.take_block(*s);  // 15, 16, 18
  ++heap.objects;
  heap.objects_from_used_superblocks += s->is_used();
  check(!heap.is_too_empty_for_malloc(), "malloc", block);
  return block;  // 17
}

// Ends the program if the address cannot be a block's.
Superblock& superblock_of(const void* block, const char* function) noexcept {
  if (AddressMap::kind(address_of(block)) != ChunkKind::kRegions) die_on_misuse(function, block, "not a block of hoard");
  Superblock& s = Superblock::of(block);
  if (!s.may_start(block)) die_on_misuse(function, block, "not the start of a block");
  return s;
}

}  // namespace

// Line 2 comes before line 1: the options, including S, are read when the first thread asks for its heap.
void* allocate(size_t size) noexcept {
  Heap* heap = heaps.of_this_thread();                                                     // 2
  if (heap == nullptr || size > classes.largest()) return allocate_large(size, kGranule);  // 1
  return allocate_small(*heap, classes.of(size));
}

// Superblocks and their first blocks start at a cache line, so any class whose size is a multiple of the alignment will
// do.  Beyond a line, or without such a class: pages.
void* allocate_aligned(size_t alignment, size_t size) noexcept {
  Heap* heap = heaps.of_this_thread();
  size_t size_class = heap == nullptr || alignment > kLine ? classes.count() : classes.aligned(size, alignment);
  return size_class == classes.count() ? allocate_large(size, alignment) : allocate_small(*heap, size_class);
}

void deallocate(void* block, const char* function) noexcept {
  if (LargeBlocks::holds(block)) return heaps.large.free(block, function);  //  1, 2
  Superblock& s = superblock_of(block, function);                           //  3
  LockGuard superblock(s.lock);
  OwnerGuard owner(s);  //  4
  Heap& heap = owner.heap();
  if (!s.may_be_live(block)) die_on_misuse(function, block, "no live block: freed already, or never allocated");
  heap.put_block(s, block);                //  5, 6, 7
  if (&heap == &heaps.global()) return;    //  8
  if (heap.crosses_emptiness_threshold())  //  9
    heaps.transfer_to_global(heap);        // 10, 11, 12
  check(!heap.crosses_emptiness_threshold(), function, block);
}  // 13

size_t usable_size(const void* block, const char* function) noexcept {
  if (LargeBlocks::holds(block)) return heaps.large.usable_size(block, function);
  return superblock_of(block, function).block_size();
}

bool comes_zeroed(const void* block) noexcept { return LargeBlocks::holds(block) && heaps.large.comes_zeroed(block); }

void* resize(void* block, size_t size) noexcept {
  return LargeBlocks::holds(block) ? heaps.large.resize(block, size) : nullptr;
}

}  // namespace hm::hoard

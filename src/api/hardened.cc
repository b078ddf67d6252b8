#include "api/hardened.h"

#include <cerrno>
#include <cstring>

#include "api/allocator.h"
#include "api/misuse.h"
#include "base/memory_tags.h"
#include "core/block_edges.h"
#include "core/quarantine.h"
#include "large/huge.h"
#include "pages/slice_pool.h"
#include "profile/samples.h"
#include "threads/own_heaps.h"
#include "threads/registry.h"

namespace hm::front {
namespace {

// In what follows `pointer` is what the program has, with the block's tag if memory has tags, and `block` is without.
constexpr const char* kStale = "not the pointer that the block was handed out by: an earlier one, or made up";

// A small block that the program has.
struct Small {
  BlockState* state = nullptr;  // null: none starts here
  size_t capacity = 0;
  bool first = false;  // of its superblock

  BlockEdges edges(void* block) const noexcept { return {block, capacity}; }
};

// Without the tag, if it leads to where small blocks are, or were: no others have one.
void* untagged(const void* pointer) noexcept {
  void* block = memory_tags.strip(pointer);
  ChunkKind kind = AddressMap::kind(address_of(block));
  return kind == ChunkKind::kSlices || kind == ChunkKind::kGone ? block : const_cast<void*>(pointer);
}

Small find_small(const void* block) noexcept {
  uintptr_t address = address_of(block);
  if (AddressMap::kind(address) != ChunkKind::kSlices) return {};
  Superblock& sb = Superblock::of(address);
  BlockPlace place(sb, address);
  if (!place.exact()) return {};
  BlockState& state = sb.states[place.index()];
  return {&state, sb.block_size, place.index() == 0};
}

// It was about to be handed out, and may be in the profile already.
[[noreturn]] HM_COLD void die_written_before(void* block) noexcept {
  if (find_block(block).state.is_sampled()) samples.drop(block);
  die_written("malloc", block);
}

void* with_tag(void* block, size_t size) noexcept {
  const Superblock& sb = Superblock::of(address_of(block));
  size_t i = BlockPlace(sb, address_of(block)).index();
  auto neighbour = [&](size_t of) { return of < sb.blocks ? sb.start + of * sb.block_size : nullptr; };
  return memory_tags.give(block, size, neighbour(i - 1), neighbour(i + 1));
}

void* hand_out(void* block, size_t capacity, size_t size, size_t alignment) noexcept {
  if (block == nullptr) return nullptr;
  fault_in_for_writing(block, capacity);
  if (!is_all_zero(block, capacity)) die_written_before(block);
  BlockEdges(block, capacity).write(size, alignment);
  return memory_tags.are_on() ? with_tag(block, size) : block;
}

// The block is in nobody's hands but this thread's.  Whether it still is all zero is looked at when it is handed out.
void serve_again(void* block, const char* function) noexcept {
  find_block(block).state.mark_taken();
  hm::deallocate(block, function);
}

void make_room(Quarantine& quarantine, size_t bytes, const char* function) noexcept {
  while (quarantine.is_full_for(bytes)) {
    void* block = quarantine.take();
    if (block == nullptr) return;
    serve_again(block, function);
  }
}

// What is wrong with a block that others may be allocating, freeing or resizing, or null.  Its edge is the last that they write,
// and the first that they clear, so where it is clear nothing is known; what a look finds in the middle of it is gone after a
// few more.
const char* lasting_fault(const BlockState& state, const BlockEdges& edges, bool first) noexcept {
  constexpr int kLooks = 1000;
  const char* fault = nullptr;
  for (int i = 0; i < kLooks; ++i) {
    keep_order();  // what was read is read anew
    BlockState now = state.as_it_was();
    fault = now.is_free() || now.is_cached() || edges.is_clear() ? nullptr : edges.fault(first);
    if (fault == nullptr) return nullptr;
  }
  return fault;
}

// As it was requested.  A live block, or null for null; anything else ends the program.
struct Request {
  size_t size = 0, alignment = kGranule;
  bool small = false;
};

Request request_of(const void* pointer, const char* function) noexcept {
  void* block = untagged(pointer);
  size_t capacity = hm::usable_size(block, function);
  Small small = find_small(block);
  if (small.state == nullptr) return {capacity};
  if (!memory_tags.fit(pointer)) die(function, block, kStale);
  AnyTag any;
  BlockEdges edges = small.edges(block);
  if (!edges.is_whole()) die(function, block, BlockEdges::kBehind);
  return {edges.size(), edges.alignment(), true};
}

// least: what the block must be filled with, edge included.
bool resize_in_place(void* pointer, size_t before, size_t size, size_t least, const char* function) noexcept {
  void* block = untagged(pointer);
  Small small = find_small(block);
  size_t needed = size + BlockEdges::kBytes;
  if (size > BlockEdges::kMostSize || needed > small.capacity || needed <= least) return false;
  AnyTag any;
  BlockEdges edges = small.edges(block);
  if (const char* fault = edges.fault(small.first)) die(function, block, fault);
  edges.clear(std::min(before, size));
  edges.write(size, kGranule);
  memory_tags.resize(pointer, before, size);
  return true;
}

}  // namespace

void* allocate(size_t size) noexcept {
  if (HM_UNLIKELY(size > BlockEdges::kMostSize)) return hm::allocate_large_block(size, kGranule);
  size_t needed = size + BlockEdges::kBytes;
  return hand_out(hm::allocate(needed), size_of(class_of(needed)), size, kGranule);
}

void* allocate_zeroed(size_t count, size_t size) noexcept {  // all blocks are, here
  size_t bytes;
  return __builtin_mul_overflow(count, size, &bytes) ? out_of_memory() : allocate(bytes);
}

void* allocate_aligned(size_t alignment, size_t size) noexcept {
  if (alignment <= kGranule) return allocate(size);
  size_t c = size > BlockEdges::kMostSize ? kClasses : aligned_class(size + BlockEdges::kBytes, alignment);
  if (c == kClasses) return hm::allocate_large_block(std::max(size, size_t{1}), alignment);
  return hand_out(hm::allocate(kClassSize[c]), kClassSize[c], size, alignment);
}

namespace {

// Nothing of such a heap may wait in a thread's quarantine.  Its superblock is not swept again before its end is reached.
bool return_to_own_heap(void* block) noexcept {
  BlockRef ref = find_block(block);
  if (!belongs_to_own_heap(ref.sb)) return false;
  give_back(ref.sb, ref.state);
  return true;
}

}  // namespace

void deallocate(void* pointer, const char* function) noexcept {
  void* block = untagged(pointer);
  Small small = find_small(block);
  const void* by = __builtin_return_address(0);
  bool taken = small.state != nullptr && small.state->take_back();
  bool own = !taken && small.state != nullptr && small.state->end_own();
  bool sampled = !taken && !own && small.state != nullptr && small.state->end_sample();
  if (!taken && !own && !sampled) return hm::free_slow(block, function);  // a large block, null, or a mistake
  AnyTag any;
  BlockEdges edges = small.edges(block);
  const char* fault = memory_tags.fit(pointer) ? edges.fault(small.first) : kStale;
  if (fault != nullptr) small.state->mark_taken(), die(function, block, fault);
  if (sampled) hm::forget_sampled(block, by);
  size_t size = edges.size();
  edges.clear();
  memory_tags.take(block, size);
  if (!taken && return_to_own_heap(block)) return;
  ThreadHeap* heap = heap_or_attach();
  if (heap == nullptr) return serve_again(block, function);
  make_room(heap->quarantine(), small.capacity, function);
  heap->quarantine().put(block, small.capacity);
}

size_t usable_size(const void* pointer, const char* function) noexcept { return request_of(pointer, function).size; }

void* reallocate(void* pointer, size_t size, const char* function) noexcept {
  if (pointer == nullptr) return allocate(size);
  Request before = request_of(pointer, function);
  if (size == 0) {
    deallocate(pointer, function);
    return nullptr;
  }
  void* block = untagged(pointer);
  if (before.small && resize_in_place(pointer, before.size, size, find_small(block).capacity / 2, function)) return pointer;
  int saved = errno;
  OwnHeap* heap = hm::heap_of(block, function);  // where it stays
  void* fresh = heap == nullptr ? allocate(size) : front::allocate_in(*heap, size);
  if (fresh == nullptr) {
    bool shrunk = before.small ? resize_in_place(pointer, before.size, size, 0, function)
                               : resize_huge(*huge_extent(block), size) != nullptr;
    if (!shrunk) return nullptr;
    errno = saved;
    return pointer;
  }
  memcpy(fresh, pointer, std::min(size, before.size));
  deallocate(pointer, function);
  return fresh;
}

void* allocate_in(OwnHeap& heap, size_t size) noexcept {
  if (size > BlockEdges::kMostSize) return hm::allocate_large_block_in(heap, size, kGranule);
  size_t needed = size + BlockEdges::kBytes;
  return hand_out(hm::allocate_in(heap, needed), size_of(class_of(needed)), size, kGranule);
}

void* allocate_zeroed_in(OwnHeap& heap, size_t count, size_t size) noexcept {
  size_t bytes;
  return __builtin_mul_overflow(count, size, &bytes) ? out_of_memory() : front::allocate_in(heap, bytes);
}

void* allocate_aligned_in(OwnHeap& heap, size_t alignment, size_t size) noexcept {
  if (alignment <= kGranule) return front::allocate_in(heap, size);
  size_t c = size > BlockEdges::kMostSize ? kClasses : aligned_class(size + BlockEdges::kBytes, alignment);
  if (c == kClasses) return hm::allocate_large_block_in(heap, std::max(size, size_t{1}), alignment);
  return hand_out(hm::allocate_in(heap, kClassSize[c]), kClassSize[c], size, alignment);
}

OwnHeap* heap_of(const void* pointer, const char* function) noexcept { return hm::heap_of(untagged(pointer), function); }

namespace {

// As if it were freed.  In the child of a fork it may be one that another thread was about to get or had begun to free: it has
// no edge, or is cached.
void clear(const BlockState& state, void* block, size_t capacity, bool first) noexcept {
  BlockEdges edges(block, capacity);
  if (state.is_cached() || edges.is_clear()) {
    memset(block, 0, capacity);
  } else {
    if (const char* fault = edges.fault(first)) die("hm_heap_destroy", block, fault);
    edges.clear();
  }
  memory_tags.take(block, capacity);
}

void clear_all(Superblock& sb) noexcept {
  AnyTag any;
  for (size_t i = 0; i < sb.blocks; ++i)
    if (!sb.states[i].is_free()) clear(sb.states[i], sb.start + i * sb.block_size, sb.block_size, i == 0);
}

}  // namespace

void free_all_of(OwnHeap& heap) noexcept {
  hm::free_large_of(heap);
  while (Superblock* sb = heap.take_out()) {
    clear_all(*sb);
    hm::free_all_in(*sb, __builtin_return_address(0));
  }
}

// The superblocks stay while the lock of their slices is held; a fault is told of without it.
size_t check_blocks() noexcept {
  if (have_heap()) my_thread_heap().quarantine().check();
  check_freed_huge_blocks();
  size_t looked_at = check_live_huge_blocks("hm_check");
  const char* fault = nullptr;
  void* block = nullptr;
  AnyTag any;
  slice_pool.for_each([&](Slice& slice) {
    Superblock& sb = Superblock::of(slice);
    for (size_t i = 0; i < sb.blocks && fault == nullptr; ++i) {
      BlockState now = sb.states[i].as_it_was();
      if (now.is_free() || now.is_cached()) continue;
      ++looked_at;
      block = sb.start + i * sb.block_size;
      fault = lasting_fault(sb.states[i], {block, sb.block_size}, i == 0);
    }
  });
  if (fault != nullptr) die("hm_check", block, fault);
  return looked_at;
}

void check_size(const void* pointer, size_t size, size_t alignment, const char* function) noexcept {
  if (pointer == nullptr) return;
  Request asked = request_of(pointer, function);
  size_t had = asked.small ? size : std::max(size, size_t{1});
  if (asked.size != had) die(function, pointer, "freed with a size it was not allocated with");
  bool aligned = asked.small ? asked.alignment == std::max(alignment, kGranule) : address_of(pointer) % alignment == 0;
  if (!aligned) die(function, pointer, "freed with an alignment it was not allocated with");
}

}  // namespace hm::front

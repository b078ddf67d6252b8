#include "api/hardened.h"

#include <cerrno>
#include <cstring>

#include "api/allocator.h"
#include "api/misuse.h"
#include "core/block_edges.h"
#include "core/quarantine.h"
#include "large/huge.h"
#include "profile/samples.h"
#include "threads/registry.h"

namespace hm::front {
namespace {

// A small block that the program has.
struct Small {
  BlockState* state = nullptr;  // null: none starts here
  size_t capacity = 0;
  bool first = false;  // of its superblock

  BlockEdges edges(void* block) const noexcept { return {block, capacity}; }
};

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

void* hand_out(void* block, size_t capacity, size_t size, size_t alignment) noexcept {
  if (block == nullptr) return nullptr;
  fault_in_for_writing(block, capacity);
  if (!is_all_zero(block, capacity)) die_written_before(block);
  BlockEdges(block, capacity).write(size, alignment);
  return block;
}

// The block is all zero, and in nobody's hands but this thread's.
void serve_again(void* block, const char* function) noexcept {
  find_block(block).state.mark_taken();
  hm::deallocate(block, function);
}

void make_room(Quarantine& quarantine, size_t bytes, const char* function) noexcept {
  while (quarantine.is_full_for(bytes)) {
    void* block = quarantine.take();
    if (block == nullptr) return;
    if (!Quarantine::is_zero(block)) die_written("free", block);
    serve_again(block, function);
  }
}

// As it was requested.  A live block, or null for null; anything else ends the program.
struct Request {
  size_t size = 0, alignment = kGranule;
  bool small = false;
};

Request request_of(const void* block, const char* function) noexcept {
  size_t capacity = hm::usable_size(block, function);
  Small small = find_small(block);
  if (small.state == nullptr) return {capacity};
  BlockEdges edges = small.edges(const_cast<void*>(block));
  if (!edges.is_whole()) die(function, block, BlockEdges::kBehind);
  return {edges.size(), edges.alignment(), true};
}

// least: what the block must be filled with, edge included.
bool resize_in_place(void* block, size_t before, size_t size, size_t least, const char* function) noexcept {
  Small small = find_small(block);
  size_t needed = size + BlockEdges::kBytes;
  if (size > BlockEdges::kMostSize || needed > small.capacity || needed <= least) return false;
  BlockEdges edges = small.edges(block);
  if (const char* fault = edges.fault(small.first)) die(function, block, fault);
  edges.clear(std::min(before, size));
  edges.write(size, kGranule);
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

void deallocate(void* block, const char* function) noexcept {
  Small small = find_small(block);
  const void* by = __builtin_return_address(0);
  bool taken = small.state != nullptr && small.state->take_back();
  bool sampled = !taken && small.state != nullptr && small.state->end_sample();
  if (!taken && !sampled) return hm::free_slow(block, function);  // a large block, null, or a mistake
  BlockEdges edges = small.edges(block);
  if (const char* fault = edges.fault(small.first)) small.state->mark_taken(), die(function, block, fault);
  if (sampled) hm::forget_sampled(block, by);
  edges.clear();
  ThreadHeap* heap = heap_or_attach();
  if (heap == nullptr) return serve_again(block, function);
  make_room(heap->quarantine(), small.capacity, function);
  heap->quarantine().put(block, small.capacity);
}

size_t usable_size(const void* block, const char* function) noexcept { return request_of(block, function).size; }

void* reallocate(void* block, size_t size, const char* function) noexcept {
  if (block == nullptr) return allocate(size);
  Request before = request_of(block, function);
  if (size == 0) {
    deallocate(block, function);
    return nullptr;
  }
  if (before.small && resize_in_place(block, before.size, size, find_small(block).capacity / 2, function)) return block;
  int saved = errno;
  void* fresh = allocate(size);
  if (fresh == nullptr) {
    bool shrunk = before.small ? resize_in_place(block, before.size, size, 0, function)
                               : resize_huge(*huge_extent(block), size) != nullptr;
    if (!shrunk) return nullptr;
    errno = saved;
    return block;
  }
  memcpy(fresh, block, std::min(size, before.size));
  deallocate(block, function);
  return fresh;
}

void check_size(const void* block, size_t size, size_t alignment, const char* function) noexcept {
  if (block == nullptr) return;
  Request asked = request_of(block, function);
  size_t had = asked.small ? size : std::max(size, size_t{1});
  if (asked.size != had) die(function, block, "freed with a size it was not allocated with");
  bool aligned = asked.small ? asked.alignment == std::max(alignment, kGranule) : address_of(block) % alignment == 0;
  if (!aligned) die(function, block, "freed with an alignment it was not allocated with");
}

}  // namespace hm::front

#include "blocks.h"

#include <hmalloc/hmalloc_local.h>

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace stress {

uint64_t seed = 1;

void fail(const char* what, const void* where) {
  fprintf(stderr, "stress: %s at %p; seed %" PRIu64 "\n", what, where, seed);
  abort();
}

namespace {

uint64_t tag_of(const Block* block, size_t size, Kind kind) {
  return (reinterpret_cast<uintptr_t>(block) ^ size << 48 ^ uint64_t{kind} << 60) * 0x9e3779b97f4a7c15;
}

// Large blocks are marked at their ends and once a page: filling them would be all that the program does.
size_t stride_of(size_t size) { return size > 4096 ? 4096 - 8 : 8; }

// Every mark is a whole word, so that two of them never overlap in part.
template <class Visit>
void for_each_mark(size_t size, Visit visit) {
  for (size_t at = kMin; at + 8 <= size; at += stride_of(size)) visit(at);
  if (size >= kMin + 8) visit(size / 8 * 8 - 8);
}

void mark(Block* block, size_t size, Kind kind) {
  *block = {static_cast<uint32_t>(size), kind, tag_of(block, size, kind)};
  uint64_t tag = block->tag;
  for_each_mark(size, [&](size_t at) { memcpy(reinterpret_cast<char*>(block) + at, &tag, 8); });
}

// The marks of a block of `size` bytes as far as `prefix`: after a realloc.
void check_marks(const Block* block, uint64_t tag, size_t size, size_t prefix) {
  if (prefix < size) {
    for (size_t at = kMin; at + 8 <= prefix; at += stride_of(size))
      if (memcmp(reinterpret_cast<const char*>(block) + at, &tag, 8) != 0) fail("contents lost by realloc", block);
    return;
  }
  for_each_mark(size, [&](size_t at) {
    if (memcmp(reinterpret_cast<const char*>(block) + at, &tag, 8) != 0) fail("contents changed", block);
  });
}

void* zeroed(size_t size) {
  auto* bytes = static_cast<char*>(hm_calloc(1, size));
  if (bytes == nullptr) fail("no memory");
  for (size_t at = 0; at < size; at += stride_of(size))
    if (bytes[at] != 0) fail("calloc is not zero", bytes + at);
  return bytes;
}

void* aligned(size_t size, Random& random) {
  size_t alignment = size_t{16} << random() % 10;
  void* block = hm_aligned_alloc(alignment, size);
  if (reinterpret_cast<uintptr_t>(block) % alignment != 0) fail("misaligned", block);
  return block;
}

}  // namespace

size_t random_size(Kind kind, Random& random) {
  size_t bits = kind == kLocal ? 12 : kind == kLarge ? 21 : 15;
  size_t size = kind == kLarge ? 32769 : kMin;
  size += random() % (size_t{1} << (4 + random() % (bits - 3)));
  if (random() % 16 == 0) size = std::bit_floor(size);
  return std::max(size, kMin);
}

Block* allocate(Kind kind, size_t size, Random& random) {
  void* block = nullptr;
  switch (kind) {
    case kShared: block = hm_shared_alloc(size); break;
    case kLocal: block = hm_local_alloc(size); break;
    default:
      switch (random() % 8) {
        case 0: block = zeroed(size); break;
        case 1: block = aligned(size, random); break;
        default: block = hm_malloc(size);
      }
  }
  if (block == nullptr) fail("no memory");
  if (kind == kShared && reinterpret_cast<uintptr_t>(block) % 64 != 0) fail("a shared block within a line", block);
  if (random() % 64 == 0 && hm_usable_size(block) < size) fail("too small", block);
  mark(static_cast<Block*>(block), size, kind);
  return static_cast<Block*>(block);
}

void check(const Block* block) {
  if (block->tag != tag_of(block, block->size, block->kind)) fail("header changed", block);
  check_marks(block, block->tag, block->size, block->size);
}

void release(Block* block, Random& random) {
  check(block);
  size_t size = block->size;
  Kind kind = block->kind;
  memset(static_cast<void*>(block), 0xdd, kMin);  // a second look at it will not pass
  if (kind == kLocal && random() % 2 == 0) return hm_local_free_sized(block, size);
  if (kind == kLocal) return hm_local_free(block);
  if (kind == kShared && random() % 2 == 0) return hm_shared_free_sized(block, size);
  if (kind == kShared) return hm_shared_free(block);
  hm_free(block);
}

Block* resize(Block* block, size_t size, Random& random) {
  check(block);
  size_t old_size = block->size;
  Kind kind = block->kind;
  uint64_t tag = block->tag;
  bool local = kind == kLocal && random() % 2 == 0;
  void* other = local ? hm_local_realloc(block, size) : hm_realloc(block, size);
  if (other == nullptr) fail("no memory");
  check_marks(static_cast<Block*>(other), tag, old_size, std::min(old_size, size));
  // After hm_realloc it is a general block, whatever it was: its size need not name its class.
  mark(static_cast<Block*>(other), size, kind == kLarge ? kLarge : local ? kLocal : kGeneral);
  return static_cast<Block*>(other);
}

}  // namespace stress

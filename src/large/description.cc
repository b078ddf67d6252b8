#include "large/description.h"

#include "base/report.h"
#include "large/extent_table.h"
#include "large/runs.h"

namespace hm {
namespace {

void say(const void* pointer, const void* block, size_t size, const char* state) noexcept {
  uintptr_t to = address_of(pointer), from = address_of(block);
  FdWriter line(2);
  line << "  ";
  if (to < from) line << uint64_t{from - to} << " bytes in front of";
  else if (to < from + size) line << "byte " << uint64_t{to - from} << " of";
  else line << uint64_t{to - from - size} << " bytes behind the end of";
  line << " the block of " << uint64_t{size} << " bytes at " << block << ": " << state << "\n";
}

// Of what was kept the default library knows another size than the block had.
const char* word_for(ExtentState state) noexcept {
  switch (state) {
    case ExtentState::kLive: return "in use";
    case ExtentState::kKept: return kHardened ? "freed" : "free, and kept";
    default: return "being freed or resized";
  }
}

const void* say(const void* pointer, const char* state) noexcept {
  const Extent* extent = extent_table.find(address_of(pointer));
  if (extent == nullptr) return nullptr;
  const void* block = extent->start() + extent->lead;
  bool is_exact = kHardened || extent->state() != ExtentState::kKept;
  say(pointer, block, is_exact ? extent->size : extent->bytes(), state == nullptr ? word_for(extent->state()) : state);
  return block;
}

}  // namespace

const void* describe_run(const Slice& slice, const void* pointer) noexcept {
  const Slice* first = &slice;
  while (first->kind() == SliceKind::kLargeTail) --first;
  const void* block = const_cast<Slice*>(first)->base();
  if (first->kind() == SliceKind::kLarge && address_of(pointer) - address_of(block) < large_capacity(*first))
    return say(pointer, block, large_capacity(*first), "in use"), block;
  bool is_data = slice.slice() < kMetaSlices;
  bool is_guard = (guards_in(Chunk::of(slice)) & mask_of(slice.slice() % kSlicesInChunk, 1)) != 0;
  FdWriter(2) << (is_data    ? "  no block is there, but the allocator's own data\n"
                  : is_guard ? "  no block is there, but a guard between superblocks\n"
                             : "  no block is there: its memory is free, or kept for one above 32 KB\n");
  return nullptr;
}

const void* describe_huge(const void* pointer) noexcept { return say(pointer, nullptr); }
void describe_held(const void* block) noexcept { say(block, "in use"); }
void describe_freed(const void* block) noexcept { say(block, "freed"); }

}  // namespace hm

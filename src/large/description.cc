#include "large/description.h"

#include "base/report.h"
#include "large/extent_table.h"
#include "large/runs.h"

namespace hm {
namespace {

void say_place(FdWriter& line, const void* pointer, const void* block, size_t size) noexcept {
  uintptr_t to = address_of(pointer), from = address_of(block);
  to < from ? line << "  in front of" : line << "  byte " << uint64_t{to - from} << " of";
  line << " the block of " << uint64_t{size} << " bytes at " << block << ": ";
}

const char* word_for(ExtentState state) noexcept {
  switch (state) {
    case ExtentState::kLive: return "in use";
    case ExtentState::kKept: return "freed";
    default: return "being freed or resized";
  }
}

}  // namespace

void describe_run(const Slice& slice, const void* pointer) noexcept {
  const Slice* first = &slice;
  while (first->kind() == SliceKind::kLargeTail) --first;
  const void* block = const_cast<Slice*>(first)->base();
  size_t size = large_capacity(*first);
  FdWriter line(2);
  if (first->kind() == SliceKind::kLarge && address_of(pointer) - address_of(block) < size)
    say_place(line, pointer, block, size), line << "in use\n";
  else line << "  no block is there: free, kept for one above 32 KB, or the allocator's own memory\n";
}

void describe_huge(const void* pointer) noexcept {
  const Extent* extent = extent_table.find(address_of(pointer));
  if (extent == nullptr) return;
  FdWriter line(2);
  say_place(line, pointer, extent->start() + extent->lead, extent->size);
  line << word_for(extent->state()) << "\n";
}

}  // namespace hm

#include "api/misuse.h"

#include "base/memory_tags.h"
#include "base/report.h"
#include "core/description.h"
#include "guard/guarded_blocks.h"
#include "large/description.h"
#include "pages/region.h"
#include "profile/samples.h"

namespace hm {
namespace {

void describe(const void* pointer) noexcept {
  AnyTag any;
  pointer = memory_tags.strip(pointer);
  uintptr_t address = address_of(pointer);
  const void* block = nullptr;  // where it starts, if there is one
  switch (AddressMap::kind(address)) {
    case ChunkKind::kSlices: {
      Slice& slice = Slice::of(address);
      block = slice.is_small() ? describe_small(pointer) : describe_run(slice, pointer);
      break;
    }
    case ChunkKind::kHuge: block = describe_huge(pointer); break;
    case ChunkKind::kGuarded:
      if (const GuardedPlace* place = guarded_blocks.find(address).place) place->describe();
      return;  // it has said what samples would
    case ChunkKind::kGone:
      FdWriter(2) << "  a block was there once: its memory went back to the system, or to another block\n";
      break;
    default: return;  // nothing of ours
  }
  samples.describe(block != nullptr ? block : pointer);
}

// The small block is nobody's.
void describe_with_samples(const void* block) noexcept {
  describe_written(block);
  samples.describe(block);
}

}  // namespace

void die(const char* function, const void* pointer, const char* reason) noexcept {
  die_on_misuse(function, pointer, reason, describe);
}

void die_written(const char* function, const void* block) noexcept {
  die_on_misuse(function, block, kWrittenAfterFree, describe_with_samples);
}

}  // namespace hm

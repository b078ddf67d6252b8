#include "api/misuse.h"

#include "base/report.h"
#include "core/description.h"
#include "guard/guarded_blocks.h"
#include "large/description.h"
#include "pages/region.h"
#include "profile/samples.h"

namespace hm {
namespace {

const void* describe_block(const void* pointer) noexcept {  // where it starts; null: there is none, or no more to say
  uintptr_t address = address_of(pointer);
  switch (AddressMap::kind(address)) {
    case ChunkKind::kSlices: {
      Slice& slice = Slice::of(address);
      return slice.is_small() ? describe_small(pointer) : describe_run(slice, pointer);
    }
    case ChunkKind::kHuge: return describe_huge(pointer);
    case ChunkKind::kGuarded:
      if (const GuardedPlace* place = guarded_blocks.find(address).place) place->describe();
      return nullptr;
    case ChunkKind::kGone:
      FdWriter(2) << "  a block was there once: its memory went back to the system, or to another block\n";
      return pointer;
    default: return nullptr;  // nothing of ours
  }
}

void describe(const void* pointer) noexcept {
  const void* block = describe_block(pointer);
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

#include "api/misuse.h"

#include "base/report.h"
#include "core/description.h"
#include "large/description.h"
#include "pages/region.h"
#include "profile/samples.h"

namespace hm {
namespace {

void describe(const void* pointer) noexcept {
  uintptr_t address = address_of(pointer);
  switch (AddressMap::kind(address)) {
    case ChunkKind::kSlices: {
      Slice& slice = Slice::of(address);
      slice.is_small() ? describe_small(pointer) : describe_run(slice, pointer);
      break;
    }
    case ChunkKind::kHuge: describe_huge(pointer); break;
    case ChunkKind::kGone: FdWriter(2) << "  its memory went back to the system\n"; break;
    default: return;  // nothing of ours, or a guarded block, which says more
  }
  samples.describe(pointer);
}

}  // namespace

void die(const char* function, const void* pointer, const char* reason) noexcept {
  die_on_misuse(function, pointer, reason, describe);
}

}  // namespace hm

// What is known of a large or huge block, for who reports that it was misused.  As core/description.h.
#pragma once
#include "pages/region.h"

namespace hm {

// The slice is no superblock's, and the address lies in it.  Returns the block, or null if there is none.
const void* describe_run(const Slice& slice, const void* pointer) noexcept;
// The address lies in the first chunk of an extent.  Returns the block, or null if that chunk has no extent of its own.
const void* describe_huge(const void* pointer) noexcept;
// The program has the block that starts there, or has freed it; its extent may be in the hands of who found that out.
void describe_held(const void* block) noexcept;
void describe_freed(const void* block) noexcept;

}  // namespace hm

// What is known of a large or huge block, for who reports that it was misused.  As core/description.h.
#pragma once
#include "pages/region.h"

namespace hm {

// The slice is no superblock's, and the address lies in it.
void describe_run(const Slice& slice, const void* pointer) noexcept;
// The address lies in the first chunk of an extent.
void describe_huge(const void* pointer) noexcept;

}  // namespace hm

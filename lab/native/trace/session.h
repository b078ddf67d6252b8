// Recording in this process: opens its spool at the first call, and appends records.
#pragma once

#include "spool.h"

namespace hm::trace {

// Appends a record for the calling thread.  Allocates nothing and preserves errno; must not nest within a thread.
void record(Call call, const void* block, size_t size = 0, unsigned alignment = 0) noexcept;

}  // namespace hm::trace

// Recording in this process: opens its spool at the first call, and appends records.
#pragma once

#include "spool.h"

namespace hm::trace {

// Appends a record for the calling thread.  Allocates nothing and keeps errno; not to be nested within a thread.
void record(Call call, const void* block, size_t size = 0, unsigned alignment = 0) noexcept;

}  // namespace hm::trace

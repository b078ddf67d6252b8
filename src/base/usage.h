// What an allocator holds, and what part of it the program has, in bytes; for mallinfo and malloc_info.
#pragma once
#include "base/sizes.h"

namespace hm {

struct Usage {
  size_t mapped;     // from the system
  size_t resident;   // of that, as far as known
  size_t active;     // in superblocks, arenas and mappings that contain a block
  size_t allocated;  // held by the program
  size_t cached;     // in the threads' caches
  size_t retained;   // free, but kept
};

}  // namespace hm

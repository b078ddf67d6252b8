// What statistics are made of, counted on request: the fast paths count nothing.
#pragma once
#include <hmalloc/hmalloc.h>

#include <array>

#include "base/size_classes.h"

namespace hm {

struct ClassGauges {
  uint64_t superblocks, held_blocks, cached_blocks;  // held: by the program or by a cache
};
struct Census {
  hm_stats total{};
  std::array<ClassGauges, kClasses> classes{};
  uint64_t active_in_superblocks = 0;
  uint64_t cached_runs = 0;  // bytes
  uint64_t large_blocks = 0, large_bytes = 0;
};

// For any thread; takes the locks of what it counts, one after another.
Census take_census() noexcept;

}  // namespace hm

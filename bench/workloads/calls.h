// Sequences of calls that are drawn in advance and then played, as the malloc-lab driver plays a trace: timed are only
// the allocator, and one byte written to each block.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "memory.h"
#include "workers.h"

namespace bench {

struct Call {
  std::uint32_t slot;
  std::uint32_t size;  // 0: free
};

struct Block {
  void* address;
  std::size_t size;
};

// Every block is local: each thread frees its own.
inline void play(const std::vector<Call>& calls, std::vector<Block>& blocks) {
  for (const Call& call : calls) {
    Block& block = blocks[call.slot];
    if (call.size > 0) {
      block = {local::allocate_touched(call.size), call.size};
    } else {
      local::release(block.address, block.size);
    }
  }
}

// The sizes of VVMalloc's workloads 1 to 3.
inline std::uint32_t mostly_tiny(Random& random) {
  return random.below(16) > 0 ? 4 + random.below(29) : 33 + random.below(96);
}
inline std::uint32_t large(Random& random) { return 3072 + random.below(9217); }
inline std::uint32_t mixed(Random& random) {
  return static_cast<std::uint32_t>(4 * std::pow(21.0 * 1024 / 4, random.next() / 4294967296.0));
}

}  // namespace bench

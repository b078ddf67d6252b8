// The paper's parameters S, b, f, K and the number of heaps, from the environment.
#pragma once
#include "base/sizes.h"

namespace hm::hoard {

inline constexpr size_t kThousand = 1000;
inline constexpr size_t kMaxSuperblock = kMiB;
inline constexpr size_t kMaxHeaps = 1024;
inline constexpr size_t kMaxSteps = 10;  // fullness groups between full and empty: 1/f at most

struct Options {
  size_t superblock = 8 * kKiB;  // S, bytes
  size_t class_base = 1200;      // b, in thousandths
  size_t empty_fraction = 250;   // f, in thousandths
  size_t keep = 4;               // K, superblocks
  size_t heaps = 0;              // per-processor heaps; 0: two for each processor
};
extern constinit Options options;  // constant once read_options() has run

// An option out of range gets a line on descriptor 2 and its default.
void read_options() noexcept;

}  // namespace hm::hoard

// Where memory comes from.  Superblocks never go back to the system; blocks that come directly from it do when freed.
#pragma once
#include "baselines/common/large_blocks.h"
#include "baselines/common/regions.h"

namespace hm::hmalloc_paper {

// "Usually a superblock of 64 KB is enough" (section 3.1); a thread that exhausts it gets larger ones, for fewer system
// calls.
inline constexpr size_t kFirstSuperblock = 64 * kKiB;
inline constexpr size_t kNextSuperblock = 4 * kMiB;

inline constinit Regions first_superblocks{kFirstSuperblock};
inline constinit Regions next_superblocks{kNextSuperblock};
inline constinit LargeBlocks large_blocks;  // "allocate memory from OS" of Fig. 5 and 6

}  // namespace hm::hmalloc_paper

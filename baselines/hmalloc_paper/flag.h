// The flag of a shared block (section 3.1): the one word by which a free by any thread reaches the block's owner.
#pragma once
#include <atomic>

#include "base/sizes.h"

namespace hm::hmalloc_paper {

// It starts the block, and the program's part follows.  It has 8 bytes in the paper, which would put that part at 8
// modulo 64; 16 here, for the alignment that the C ABI requires.
//
// The paper's plain store may become visible before the last accesses to the block, and its plain load before the
// owner's check: then two threads write one block.  Release and acquire forbid that; on x86-64 both are still a plain
// move.
class alignas(kGranule) Flag {
 public:
  // For the owner.  Acquire: what was done with the block before reset() happens before what the owner does with it.
  bool is_free() const noexcept { return word_.load(std::memory_order_acquire) == kFree; }
  // For the owner, before the block leaves it.  Relaxed: nobody else writes a free block's flag, and whoever receives
  // the block sees this store first.
  void occupy() noexcept { word_.store(kOccupied, std::memory_order_relaxed); }
  // For any thread that frees the block; its last access to it.
  void reset() noexcept { word_.store(kFree, std::memory_order_release); }
  // For is_valid().
  bool is_sound() const noexcept { return word_.load(std::memory_order_relaxed) <= kOccupied; }

 private:
  static constexpr uint64_t kFree = 0, kOccupied = 1;  // fresh memory is zero: free
  std::atomic<uint64_t> word_;
};
static_assert(sizeof(Flag) == kGranule);

}  // namespace hm::hmalloc_paper

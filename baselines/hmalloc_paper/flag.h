// The flag of a shared block (section 3.1): the one word through which a free by any thread reaches the block's owner.
#pragma once
#include <atomic>

#include "base/sizes.h"

namespace hm::hmalloc_paper {

// It starts the block, and the program's part follows.  8 bytes in the paper, which would put that part at 8 modulo 64;
// 16 here, for the alignment that the C ABI asks.
//
// The paper's plain store may be seen before the last things that were done with the block, and its plain load before
// the owner looks: then two threads write one block.  Release and acquire forbid that; on x86-64 both are still a plain
// move.
class alignas(kGranule) Flag {
 public:
  // The owner.  Acquire: what was done with the block before reset() happens before what the owner does with it.
  bool is_free() const noexcept { return word_.load(std::memory_order_acquire) == kFree; }
  // The owner, before the block leaves it.  Relaxed: nobody else writes a free block's flag, and whoever is handed the
  // block sees this first.
  void occupy() noexcept { word_.store(kOccupied, std::memory_order_relaxed); }
  // Who frees the block: any thread, and the last thing it does to it.
  void reset() noexcept { word_.store(kFree, std::memory_order_release); }
  // For examinations.
  bool is_sound() const noexcept { return word_.load(std::memory_order_relaxed) <= kOccupied; }

 private:
  static constexpr uint64_t kFree = 0, kOccupied = 1;  // fresh memory is zero: free
  std::atomic<uint64_t> word_;
};
static_assert(sizeof(Flag) == kGranule);

}  // namespace hm::hmalloc_paper

// Segregated lists of free blocks: one for each step of sizes, the last for all larger ones.  First fit, last in first
// out, as the malloc lab teaches it.  For one thread, or under a lock.
#pragma once
#include <array>

#include "baselines/vvmalloc/approach.h"
#include "baselines/vvmalloc/block.h"

namespace hm::vvmalloc {

inline constexpr size_t kLists = 64;

constexpr size_t list_of(size_t size) {
  size_t step = step_of(size / (kMin / 4));
  return step < kLists ? step : kLists - 1;
}
static_assert(list_of(kMin) == 0 && list_of(112) == 7 && list_of(kMax) == kLists - 1);

class FreeLists {
 public:
  constexpr FreeLists() = default;

  void insert(Block* block) noexcept;
  void remove(Block* block) noexcept;
  // A block of at least this size, which stays in its list; null: none found.
  Block* find(size_t size) noexcept;
  // The same, but no further than one list above that of its size: for a block that must not be split.
  Block* find_close(size_t size) noexcept;
  // Whether the block was the last one inserted into its list: a cheap check that detects a second free in a row.
  bool is_first(const Block* block) const noexcept { return heads_[list_of(block->size())] == block; }

  // Every block is in the list of its size, and links and mask agree.  check(block): what else must hold.
  template <class Check>
  bool is_valid(Check check) const noexcept {
    for (size_t list = 0; list < kLists; ++list) {
      if ((heads_[list] != nullptr) != (nonempty_ >> list & 1)) return false;
      const Block* before = nullptr;
      for (const Block* block = heads_[list]; block != nullptr; before = block, block = block->next)
        if (block->prev != before || list_of(block->size()) != list || !check(*block)) return false;
    }
    return true;
  }

 private:
  // Blocks examined in the list of the request's own size, where some are too small.  Those of larger lists all fit.
  static constexpr int kLooks = 8;

  Block* look(size_t list, size_t size) noexcept;

  std::array<Block*, kLists> heads_{};
  uint64_t nonempty_ = 0;  // one bit for each list
};

}  // namespace hm::vvmalloc

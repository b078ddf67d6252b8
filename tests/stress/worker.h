// One thread of the stress: it works for a while and ends, and a successor inherits its heap.
#pragma once
#include <sys/types.h>

#include <array>
#include <atomic>
#include <vector>

#include "blocks.h"

namespace stress {

struct Plan {
  double seconds = 4;
  unsigned threads = 4;
  bool forks = true;
  bool naps = false;  // threads fall asleep, and others collect what they keep
  std::vector<Kind> kinds{kGeneral, kGeneral, kGeneral, kShared, kShared, kLocal, kLocal, kLarge};
};

// Blocks that belong to nobody: any thread takes one by exchanging it for one of its own, or for nothing.
class Table {
 public:
  Block* exchange(size_t slot, Block* block) { return slots_[slot % kSlots].exchange(block, std::memory_order_acq_rel); }
  static constexpr size_t kSlots = 1024;

 private:
  std::array<std::atomic<Block*>, kSlots> slots_{};
};
extern Table table;
extern std::atomic<bool> done;

// One life: a random number of operations, then everything still held goes to the table or back.
void live(const Plan& plan, uint64_t life);

// Forks; the child works for a moment in what the threads of its parent left behind, in the middle of whatever they did,
// and ends.  Returns the child's id, or -1.
pid_t fork_and_live(const Plan& plan, uint64_t life);

}  // namespace stress

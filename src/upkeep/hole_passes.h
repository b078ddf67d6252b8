// Gives back the holes of superblocks: pages in which all blocks are FREE, between others that are not.  Nothing of ours
// lies in a free block, so its page may go; a superblock's descriptor remembers its holes until it is swept again.
//
// A pass takes one superblock after another out of its queue in the pool or on a heap's shelf, and so is its holder (S1)
// meanwhile.  It never sees a heap's current superblocks, and is never on the path of a hit.
#pragma once
#include "base/lock.h"
#include "upkeep/pause_passes.h"

namespace hm {

struct Superblock;
class SuperblockQueue;

class HolePasses {
 public:
  // Looks at every superblock.
  void whole() noexcept;
  // Looks at as many as the pause allows; the next pass goes on there.  Nothing, if a pass is running.
  void after_pause(uint64_t pause_ms) noexcept;
  // In the child of a fork.
  void repair(uint32_t before) noexcept {
    repair_after_fork(lock_, before, [] {});
  }

 private:
  struct Pass {
    size_t most_work;
    size_t work = 0, looked_at = 0, given_back = 0;  // the last two in bytes
  };
  static void give_back(Superblock& sb, Pass& pass) noexcept;
  static void search(SuperblockQueue& queue, Pass& pass) noexcept;
  void run(Pass& pass) noexcept;
  Lock lock_;  // held during a pass; what it guards needs no repair, because any value will do
  size_t next_queue_ = 0;
  PausePasses pauses_;
};
extern HolePasses hole_passes;

}  // namespace hm

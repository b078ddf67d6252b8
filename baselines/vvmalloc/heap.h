// The heap extension.  The report's is sbrk behind a spin lock; ours moves a pointer through large segments of address
// space, behind the same lock.  Nothing is ever given back to the system.
//
// From Approach 2 on this is a thread's third and last resort, after its own list and the central queue.
#pragma once
#include "baselines/vvmalloc/block.h"
#include "baselines/vvmalloc/locks.h"

namespace hm::vvmalloc {

class Heap {
 public:
  constexpr Heap() = default;
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  // bytes: a multiple of 16.  Returns memory that was never used, 8 bytes off a multiple of 16; often where the last
  // ended.  Null if there is no memory.
  char* extend(size_t bytes) noexcept;

  struct Account {
    size_t bytes;  // handed out so far
    uint64_t extensions;
    uint64_t wait_ns;  // how long threads waited for the lock
    uint64_t lock_ns;  // how long it was held
  };
  Account account() noexcept;
  SpinLock& lock() noexcept { return lock_; }  // for fork

  // Every segment consists of arenas from its start to its top, each of blocks from edge to edge (T1), and no two
  // neighbours are free (S2).  free_blocks: of those that lists own.  While no thread uses it.
  bool is_valid(size_t* free_blocks) noexcept;

 private:
  struct Segment {
    Segment* older;
    char* top;  // handed out up to here
    char* end;
    size_t room() const noexcept { return static_cast<size_t>(end - top); }
  };
  bool new_segment(size_t least) noexcept;

  SpinLock lock_;
  Segment* newest_ = nullptr;  // the one with the most room
  Account account_{};
};

}  // namespace hm::vvmalloc

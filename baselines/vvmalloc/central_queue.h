// The central queue (Fig. 5): arenas that were allotted to the process and belong to no thread now.  Segregated, with
// four queues to each doubling from one arena on.  In Approach 2 behind one mutex, from Approach 3 on lock-free.  For
// any thread.
#pragma once
#include <array>

#include "baselines/vvmalloc/fifo.h"

namespace hm::vvmalloc {

inline constexpr size_t kUnit = kArena / 4;
inline constexpr size_t kQueues = step_of(4 * kMax / kUnit) + 1;

// The first queue whose arenas all have at least these bytes.
constexpr size_t queue_for(size_t bytes) {
  size_t units = bytes < kArena ? 4 : divide_up(bytes, kUnit);
  return step_of(units) + (start_of(step_of(units)) < units);
}

class CentralQueue {
 public:
  constexpr CentralQueue() = default;
  CentralQueue(const CentralQueue&) = delete;
  CentralQueue& operator=(const CentralQueue&) = delete;

  // The arena must be one free block without an owner.  False if there is no memory for a node.
  bool enqueue(Arena arena) noexcept;
  // An arena of at least so many bytes, from the first queue whose arenas are all large enough; empty if there is none.
  Arena dequeue(size_t bytes) noexcept;

  // At least so many bytes: a size that dequeue() finds again.
  static constexpr size_t rounded(size_t bytes) { return start_of(queue_for(bytes)) * kUnit; }

  uint64_t waited_ns() noexcept;
  uint64_t retries() const noexcept;
  Lock* lock() noexcept { return gate_.base(); }  // for fork; null if there is none
  // While no thread uses it.  vanished: number of threads that a fork has left behind.
  bool is_valid(size_t vanished) noexcept;

 private:
  Gate gate_;
  std::array<Fifo, kQueues> queues_{};
  std::atomic<size_t> used_{0};  // queues from here on have always been empty
};

static_assert(CentralQueue::rounded(1) == kArena && CentralQueue::rounded(kArena) == kArena);
static_assert(CentralQueue::rounded(kArena + 1) == kArena / 4 * 5);

}  // namespace hm::vvmalloc

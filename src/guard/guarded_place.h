// The page of a guarded block (guard/guarded_blocks.h), and what is known of the block that is or was there.
//
// Written by the thread that has the place kBusy.  Read by whoever reports an error of the program's, who may be told nonsense
// if other threads go on meanwhile.
#pragma once
#include <atomic>

#include "profile/call_trace.h"

namespace hm {

class GuardedPlace {
 public:
  enum State : uint8_t { kNew, kBusy, kLive, kFreed };

  // Relaxed, but for the pair of give_up and take: of a live block the program hands the pointer over.
  State state() const noexcept { return state_.load(std::memory_order_relaxed); }
  // One of those that try at once has it kBusy then.  Acquire: whoever had it before is done with it, and with its page.
  bool take() noexcept {
    State before = state();
    return (before == kNew || before == kFreed) &&
           state_.compare_exchange_strong(before, kBusy, std::memory_order_acquire, std::memory_order_relaxed);
  }
  void give_up() noexcept { state_.store(kFreed, std::memory_order_release); }
  void become_live() noexcept { state_.store(kLive, std::memory_order_relaxed); }
  // Of any number of frees at once, one gets it.
  bool end_life() noexcept {
    State live = kLive;
    return state_.compare_exchange_strong(live, kBusy, std::memory_order_relaxed);
  }

  // Its threads and stacks, on descriptor 2.  For any thread, also in a signal handler; allocates nothing.
  void describe() const noexcept {
    if (state() != kLive) print("freed", freed);
    print("allocated", allocated);
  }

  uintptr_t block = 0;  // 0: there never was one
  size_t size = 0;      // the program may use so many bytes
  CallTrace allocated, freed;

 private:
  std::atomic<State> state_{kNew};
};

}  // namespace hm

// A place that one thread fills and another empties, alternately.  A thread that waits soon sleeps: on a machine with
// fewer cores than threads, one that spins would delay those it waits for.
#pragma once

#include <atomic>

namespace bench {

// 1. contents belong to the sender while full_ is 0, and to the receiver while it is 1.
template <class Contents>
class alignas(128) Mailbox {
 public:
  // For the sender: contents to be filled, followed by send().
  Contents& to_fill() {
    full_.wait(1, std::memory_order_acquire);
    return contents_;
  }
  void send() { turn(1); }

  // For the receiver: contents to be used, followed by give_back().
  Contents& received() {
    full_.wait(0, std::memory_order_acquire);
    return contents_;
  }
  void give_back() { turn(0); }

 private:
  // Sequentially consistent: notify_one() wakes nobody if it sees nobody wait, and libstdc++ checks without a fence.
  // With only a release the check may come before the store, and the other side sleeps for ever.
  void turn(int full) {
    full_.store(full, std::memory_order_seq_cst);
    full_.notify_one();
  }

  std::atomic<int> full_{0};
  Contents contents_{};
};

}  // namespace bench

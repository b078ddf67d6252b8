// For tests of claims: a thread that sleeps, and the one that takes what it keeps.
#pragma once
#include <barrier>

#include "support.h"
#include "threads/registry.h"

namespace hm::test {

// A thread that does what it is asked to and sleeps in between.
class Sleeper {
 public:
  Sleeper() = default;
  ~Sleeper() {
    wish_ = nullptr;
    step_.arrive_and_wait();
  }
  void does(const std::function<void()>& wish) {
    wish_ = wish;
    step_.arrive_and_wait();
    step_.arrive_and_wait();
  }

 private:
  std::barrier<> step_{2};
  std::function<void()> wish_;
  std::jthread thread_{[this] {
    for (;;) {
      step_.arrive_and_wait();
      if (wish_ == nullptr) return;
      wish_();
      step_.arrive_and_wait();
    }
  }};
};

inline size_t cached_in(ThreadHeap& heap) {
  size_t sum = 0;
  for (size_t c = 0; c < kClasses; ++c) sum += heap.cached_blocks(c);
  return sum;
}
inline bool my_heap_is_valid() {
  if (!have_heap()) return true;
  HeapUse use(my_thread_heap());
  return my_heap()->is_valid();
}
inline void take_from_sleepers() {
  claims.look(registry.newest());
  claims.collect(registry.newest());
}

struct AClaim : NothingIsLost {
  AClaim() { options.decay_ms = 60'000; }  // however slow the machine is, the sleeper has kept what it freed
};

}  // namespace hm::test

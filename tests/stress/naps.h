// Threads that fall asleep: between their operations, and in the middle of them, in a signal handler.
#pragma once
#include <ctime>

#include "blocks.h"

namespace stress {

// Makes the calling thread nap in a signal handler again and again.
class Naps {
 public:
  explicit Naps(bool wanted);
  ~Naps();
  Naps(const Naps&) = delete;
  Naps& operator=(const Naps&) = delete;
  void between_bursts(Random& random) const;  // now and then

 private:
  bool wanted_;
  timer_t timer_{};
};

// Collects, all the time, what the others keep.
void collect_until_done();

}  // namespace stress

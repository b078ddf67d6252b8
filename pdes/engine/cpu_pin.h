// Where a thread of a simulation runs.
#pragma once

#include <sched.h>

namespace pdes {

// Each thread starts on a CPU of its own among the allowed ones, its home: left to the system, the threads of a short run
// may share one for most of it.  Pinned it stays there while the run lasts, else it may go where it likes.
// Thread safety: of the thread that made it.
class CpuPin {
 public:
  CpuPin(unsigned thread, bool pinned) noexcept;
  ~CpuPin();
  CpuPin(const CpuPin&) = delete;
  CpuPin& operator=(const CpuPin&) = delete;

  // For a thread that has just been woken: the system likes to wake it on the CPU of whoever woke it, where both would
  // take turns.  Does nothing for a thread without a place.
  static void return_home() noexcept;

 private:
  void move() const noexcept;
  cpu_set_t allowed_, home_;
  bool known_, pinned_;
};

}  // namespace pdes

// Where a thread of a simulation runs.
#pragma once

#include <sched.h>

namespace pdes {

// Each thread starts on an allowed CPU of its own, its home: otherwise the threads of a short run may share one for
// most of it.  A pinned thread stays there while the run lasts; any other may be moved by the system.  Thread safety:
// for the thread that made it.
class CpuPin {
 public:
  CpuPin(unsigned thread, bool pinned) noexcept;
  ~CpuPin();
  CpuPin(const CpuPin&) = delete;
  CpuPin& operator=(const CpuPin&) = delete;

  // For a thread that has just been woken: the system tends to wake it on the CPU of the thread that woke it, where the
  // two would take turns.  Does nothing for a thread without a home.
  static void return_home() noexcept;

 private:
  void move() const noexcept;
  cpu_set_t allowed_, home_;
  bool known_, pinned_;
};

}  // namespace pdes

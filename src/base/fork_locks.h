// Locks held around fork(): the child must find none that a thread which it does not have has taken.
#pragma once
#include "base/lock.h"

namespace hm {

// Lock::lock tells us when this very thread holds a lock that its signal handler now forks under; such a lock stays
// held, and the interrupted frame releases it, in the parent and in the child.
template <size_t kMost>
class ForkLocks {
 public:
  constexpr ForkLocks() = default;
  void take(Lock& lock) noexcept {
    if (lock.lock()) locks_[count_++] = &lock;
  }
  void release() noexcept {
    while (count_ > 0) locks_[--count_]->unlock();
  }

 private:
  Lock* locks_[kMost]{};
  size_t count_ = 0;
};

}  // namespace hm

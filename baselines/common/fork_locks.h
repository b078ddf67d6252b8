// Locks held around fork(): the child must find none that a thread which it does not have has taken.
#pragma once
#include "base/lock.h"

namespace hm {

// Lock::lock tells us when this very thread holds a lock that its signal handler now forks under; such a lock stays
// held, and the interrupted frame releases it, in the parent and in the child.
template <size_t kMax>
class ForkLocks {
 public:
  constexpr ForkLocks() = default;
  // The first lock taken must always be the same: two threads may fork at once, and it keeps the second out of here.
  void take(Lock& lock) noexcept {
    if (!lock.lock()) return;
    if (count_ == kMax) __builtin_trap();
    locks_[count_++] = &lock;
  }
  // In the parent and in the child.  Nothing in here is touched once the first lock is free.
  void release() noexcept {
    size_t count = count_;
    count_ = 0;
    while (count > 0) locks_[--count]->unlock();
  }

 private:
  Lock* locks_[kMax]{};
  size_t count_ = 0;
};

}  // namespace hm

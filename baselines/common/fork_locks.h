// Locks held around fork(): the child must not find one that is held by a thread which it does not have.
#pragma once
#include "base/lock.h"

namespace hm {

// Lock::lock tells us if this very thread holds a lock and forks in a signal handler; such a lock stays held, and the
// interrupted frame releases it, in the parent and in the child.
template <size_t kMax>
class ForkLocks {
 public:
  constexpr ForkLocks() = default;
  // The first lock must always be the same: it keeps a second thread that forks at the same time out of here.
  void take(Lock& lock) noexcept {
    if (!lock.lock()) return;
    if (count_ == kMax) __builtin_trap();
    locks_[count_++] = &lock;
  }
  // In the parent and in the child.  Touches nothing here once the first lock is free.
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

// The one lock of the allocator, for slow paths only: a futex mutex that knows its holder, because the child of a fork
// must know which of them its thread holds (a signal handler that interrupted it forked: conformance.md, case 54) and
// which are held by threads that it does not have.
#pragma once
#include <atomic>

#include "base/process.h"

namespace hm {

class Lock {
 public:
  constexpr Lock() = default;
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  // False if this thread holds the lock already (in a signal handler that interrupted it): then it must not be unlocked
  // either.
  bool lock() noexcept;
  bool try_lock() noexcept;  // false: somebody holds it
  void unlock() noexcept;
  // In the child of a fork, for its only thread, whose locks name `before`.
  void adopt_after_fork(uint32_t before) noexcept;
  // Whoever else holds it is not in the child.
  bool is_held_by_another(uint32_t before) const noexcept;
  void reset_after_fork(uint32_t before) noexcept;

 private:
  void wait(uint32_t me) noexcept;
  // 0, or the holder's thread id, with the top bit if somebody may wait.  One word, so that a signal handler never sees
  // a lock that is held by nobody it can name.
  std::atomic<uint32_t> word_{0};
};

// For signal handlers.  Whether this thread holds a lock, or is about to: if it does, a handler that takes another may
// wait for a thread that waits for this one.
bool holds_a_lock() noexcept;
// Calls `then` as soon as this thread holds none, in the middle of whatever it does: no structure is open at that point.
void when_it_holds_none(void (*then)() noexcept) noexcept;

// For a loop that waits for another thread to write.
inline void pause_briefly() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

class [[nodiscard]] LockGuard {
 public:
  explicit LockGuard(Lock& lock) noexcept : lock_(lock), mine_(lock.lock()) {}
  ~LockGuard() {
    if (mine_) lock_.unlock();
  }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  Lock& lock_;
  bool mine_;
};

// Holds the lock, or does not wait for it.
class [[nodiscard]] TryLockGuard {
 public:
  explicit TryLockGuard(Lock& lock) noexcept : lock_(lock), mine_(lock.try_lock()) {}
  ~TryLockGuard() {
    if (mine_) lock_.unlock();
  }
  TryLockGuard(const TryLockGuard&) = delete;
  TryLockGuard& operator=(const TryLockGuard&) = delete;
  bool holds() const noexcept { return mine_; }

 private:
  Lock& lock_;
  bool mine_;
};
// In the child of a fork, for each lock (before: as above).  What a thread was changing that is not there is repaired by
// repair(), and the lock is free.  A lock that the surviving thread holds stays held, and what it guards stays as it is:
// the interrupted code goes on with it.
template <class Repair>
void repair_after_fork(Lock& lock, uint32_t before, Repair repair) noexcept {
  if (!lock.is_held_by_another(before)) return lock.adopt_after_fork(before);
  repair();
  lock.reset_after_fork(before);
}

}  // namespace hm

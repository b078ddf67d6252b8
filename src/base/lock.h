// The allocator's one kind of lock, for slow paths only: a futex mutex that knows its holder.  The child of a fork must
// know which locks its own thread holds (when a signal handler that interrupted the allocator has forked) and which are
// held by threads that the child does not have.
#pragma once
#include <atomic>

#include "base/process.h"

namespace hm {

class Lock {
 public:
  constexpr Lock() = default;
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  // False if this thread already holds the lock (in a signal handler that interrupted it); then it must not unlock it
  // either.
  bool lock() noexcept;
  bool try_lock() noexcept;  // false: it is held
  void unlock() noexcept;
  // In the child of a fork, for its only thread: locks that name `before`, its id in the parent, get its new id.
  void adopt_after_fork(uint32_t before) noexcept;
  // A holder other than that thread is not in the child.
  bool is_held_by_another(uint32_t before) const noexcept;
  void reset_after_fork(uint32_t before) noexcept;

 private:
  void wait(uint32_t me) noexcept;
  // 0, or the holder's thread id, with the top bit set if somebody may be waiting.  It is one word, so that a signal
  // handler never sees a lock that is held by an unknown thread.
  std::atomic<uint32_t> word_{0};
};

// For signal handlers: whether this thread holds a lock or is about to.  If it does, a handler that takes another lock
// may deadlock.
bool holds_a_lock() noexcept;
// Calls `then` as soon as this thread holds no lock, whatever it is doing: at that point no structure is being changed.
void when_it_holds_none(void (*then)() noexcept) noexcept;

// For loops that wait for another thread's write.
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

// Holds the lock if that is possible without waiting.
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
// In the child of a fork, for each lock (before: as above).  What a thread that the child lacks was changing is
// repaired by repair(), and its lock is released.  A lock that the surviving thread holds stays held, and repair()
// leaves what it guards alone: the interrupted code will go on with it.
template <class Repair>
void repair_after_fork(Lock& lock, uint32_t before, Repair repair) noexcept {
  if (!lock.is_held_by_another(before)) return lock.adopt_after_fork(before);
  repair();
  lock.reset_after_fork(before);
}

}  // namespace hm

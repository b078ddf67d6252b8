// The report's two kinds of lock, which measure how long threads waited.  A thread that does not wait reads no clock.
#pragma once
#include <atomic>

#include "base/lock.h"

namespace hm::vvmalloc {

uint64_t now_ns() noexcept;

// A mutex: a thread that waits yields its processor.
class Mutex {
 public:
  constexpr Mutex() = default;
  bool lock() noexcept;  // false: this thread already holds it (only around fork)
  void unlock() noexcept;
  uint64_t waited_ns() const noexcept { return waited_ns_; }  // for the holder
  Lock& base() noexcept { return lock_; }                     // for fork

 private:
  Lock lock_;
  std::atomic<bool> held_{false};  // a hint: whether to read the clock
  uint64_t waited_ns_ = 0;
};

// A spin lock.  It names its holder because a thread may fork in a signal handler that interrupted it here.
class SpinLock {
 public:
  constexpr SpinLock() = default;
  bool lock() noexcept;  // false: this thread already holds it (only around fork)
  void unlock() noexcept;
  uint64_t waited_ns() const noexcept { return waited_ns_; }  // for the holder

 private:
  void spin(const void* me) noexcept;

  std::atomic<const void*> holder_{nullptr};
  uint64_t waited_ns_ = 0;
};

template <class L>
class [[nodiscard]] Holding {
 public:
  explicit Holding(L& lock) noexcept : lock_(lock), mine_(lock.lock()) {}
  ~Holding() {
    if (mine_) lock_.unlock();
  }
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;

 private:
  L& lock_;
  bool mine_;
};

}  // namespace hm::vvmalloc

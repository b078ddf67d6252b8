// The one lock of the allocator, for slow paths only: a futex mutex that knows its holder, because fork() must be able
// to take all of them even from a signal handler that interrupted a holder (conformance.md, case 54).
#pragma once
#include <atomic>

#include "base/sizes.h"

namespace hm {

class Lock {
 public:
  constexpr Lock() = default;
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  // False if this thread holds the lock already (only around fork): then it must not be unlocked either.
  bool lock() noexcept;
  void unlock() noexcept;
  bool held_by_me() const noexcept;

 private:
  void wait() noexcept;
  std::atomic<uint32_t> word_{0};       // 0 free, 1 held, 2 held and somebody waits
  std::atomic<uintptr_t> holder_{0};    // identity of the holding thread, for held_by_me alone
};

class [[nodiscard]] LockGuard {
 public:
  explicit LockGuard(Lock& lock) noexcept : lock_(lock), mine_(lock.lock()) {}
  ~LockGuard() { if (mine_) lock_.unlock(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  Lock& lock_;
  bool mine_;
};

}  // namespace hm

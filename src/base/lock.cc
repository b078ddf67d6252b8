#include "base/lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace hm {
namespace {

// The address of a thread-local variable names its thread, and still does in the child of a fork.
thread_local char identity;

constexpr int kSpins = 64;  // a critical section is shorter than this, unless its thread lost the processor

void pause_briefly() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void futex(std::atomic<uint32_t>& word, int operation, uint32_t value) noexcept {
  int saved = errno;
  syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
  errno = saved;
}

}  // namespace

bool Lock::held_by_me() const noexcept { return holder_.load(std::memory_order_relaxed) == address_of(&identity); }

// Acquire on success: the previous holder's writes happen before ours.
bool Lock::lock() noexcept {
  uint32_t free = 0;
  if (!word_.compare_exchange_strong(free, 1, std::memory_order_acquire, std::memory_order_relaxed)) {
    if (held_by_me()) return false;
    wait();
  }
  holder_.store(address_of(&identity), std::memory_order_relaxed);
  return true;
}

void Lock::wait() noexcept {
  for (int spin = 0; spin < kSpins; ++spin) {
    uint32_t free = 0;
    if (word_.load(std::memory_order_relaxed) == 0 &&
        word_.compare_exchange_strong(free, 1, std::memory_order_acquire, std::memory_order_relaxed))
      return;
    pause_briefly();
  }
  while (word_.exchange(2, std::memory_order_acquire) != 0) futex(word_, FUTEX_WAIT, 2);
}

// Release: our writes happen before the next holder's.
void Lock::unlock() noexcept {
  holder_.store(0, std::memory_order_relaxed);
  if (word_.exchange(0, std::memory_order_release) == 2) futex(word_, FUTEX_WAKE, 1);
}

}  // namespace hm

#include "base/lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace hm {
namespace {

constexpr uint32_t kWaiters = uint32_t{1} << 31;

constexpr int kSpins = 64;  // a critical section is shorter than this, unless its thread lost the processor

void futex(std::atomic<uint32_t>& word, int operation, uint32_t value) noexcept {
  int saved = errno;
  syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
  errno = saved;
}

}  // namespace

// Relaxed, here and in the next two: in a child just forked no other thread has a lock.
void Lock::rename_holder(uint32_t before) noexcept {
  if (before != 0 && (word_.load(std::memory_order_relaxed) & ~kWaiters) == before)
    word_.store(my_thread_id(), std::memory_order_relaxed);
}

bool Lock::is_held_by_another(uint32_t before) const noexcept {
  uint32_t seen = word_.load(std::memory_order_relaxed);
  return seen != 0 && (seen & ~kWaiters) != before;
}

void Lock::free_from_others(uint32_t before) noexcept {
  if (is_held_by_another(before)) word_.store(0, std::memory_order_relaxed);
}

// Acquire on success: the previous holder's writes happen before ours.
bool Lock::lock() noexcept {
  uint32_t me = my_thread_id(), seen = 0;
  if (word_.compare_exchange_strong(seen, me, std::memory_order_acquire, std::memory_order_relaxed)) return true;
  if ((seen & ~kWaiters) == me) return false;
  wait(me);
  return true;
}

void Lock::wait(uint32_t me) noexcept {
  for (int spin = 0; spin < kSpins; ++spin) {
    uint32_t free = 0;
    if (word_.load(std::memory_order_relaxed) == 0 &&
        word_.compare_exchange_strong(free, me, std::memory_order_acquire, std::memory_order_relaxed))
      return;
    pause_briefly();
  }
  for (;;) {
    uint32_t seen = word_.load(std::memory_order_relaxed);
    // Who has waited cannot know whether others still do, so it takes the lock with the mark.
    uint32_t next = seen == 0 ? me | kWaiters : seen | kWaiters;
    if (seen != next &&
        !word_.compare_exchange_strong(seen, next, std::memory_order_acquire, std::memory_order_relaxed))
      continue;
    if (seen == 0) return;
    futex(word_, FUTEX_WAIT, next);
  }
}

// Release: our writes happen before the next holder's.
void Lock::unlock() noexcept {
  if ((word_.exchange(0, std::memory_order_release) & kWaiters) != 0) futex(word_, FUTEX_WAKE, 1);
}

}  // namespace hm

#include "base/lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#include <ctime>

#include "base/system_call.h"

namespace hm {
namespace {

constexpr uint32_t kWaiters = uint32_t{1} << 31;

constinit thread_local uint32_t held = 0;  // whenever a signal handler looks, at least the number of the thread's locks
using Action = void() noexcept;
constinit thread_local Action* when_none_is_held = nullptr;

constexpr int kSpins = 64;  // a critical section is shorter, unless its thread was preempted

void futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* most = nullptr) noexcept {
  system_call(SYS_futex, system_call_argument(&word), operation | FUTEX_PRIVATE_FLAG, value, system_call_argument(most));
}

// For a handler on this thread, the fences keep the count around the lock; no other thread reads the count.
void begin_holding() noexcept {
  ++held;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

void end_holding() noexcept {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (--held != 0 || HM_LIKELY(when_none_is_held == nullptr)) return;
  Action* then = when_none_is_held;
  when_none_is_held = nullptr;
  then();
}

}  // namespace

bool holds_a_lock() noexcept { return held != 0; }
void when_it_holds_none(Action* then) noexcept { when_none_is_held = then; }

// Relaxed here and in the next two: in a child just forked no other thread has a lock.
void Lock::adopt_after_fork(uint32_t before) noexcept {
  if (before != 0 && (word_.load(std::memory_order_relaxed) & ~kWaiters) == before)
    word_.store(my_thread_id(), std::memory_order_relaxed);
}

bool Lock::is_held_by_another(uint32_t before) const noexcept {
  // ThreadSanitizer does not see that a fork comes after everything in the memory that it copies.
  uint32_t seen = word_.load(kThreadSanitizer ? std::memory_order_acquire : std::memory_order_relaxed);
  return seen != 0 && (seen & ~kWaiters) != before;
}

void Lock::reset_after_fork(uint32_t before) noexcept {
  if (is_held_by_another(before)) word_.store(0, std::memory_order_relaxed);
}

// Acquire on success: the previous holder's writes happen before ours.
bool Lock::lock() noexcept {
  uint32_t me = my_thread_id(), seen = 0;
  begin_holding();
  if (word_.compare_exchange_strong(seen, me, std::memory_order_acquire, std::memory_order_relaxed)) return true;
  if ((seen & ~kWaiters) == me) return end_holding(), false;
  wait(me);
  return true;
}

bool Lock::try_lock() noexcept {
  uint32_t me = my_thread_id(), seen = 0;
  begin_holding();
  if (word_.compare_exchange_strong(seen, me, std::memory_order_acquire, std::memory_order_relaxed)) return true;
  end_holding();
  return false;
}

void Lock::wait(uint32_t me) noexcept {
  for (int spin = 0; spin < kSpins; ++spin) {
    uint32_t free = 0;
    if (word_.load(std::memory_order_relaxed) == 0 &&
        word_.compare_exchange_strong(free, me, std::memory_order_acquire, std::memory_order_relaxed))
      return;
    pause_briefly();
  }
  // A signal handler may have forked meanwhile, and the holder is not in the child.  Whoever asks for its id there finds that
  // out and repairs the lock.  A wait that has an end is not begun again after a handler.
  constexpr timespec kAWhile{1, 0};
  for (;; me = my_thread_id()) {
    uint32_t seen = word_.load(std::memory_order_relaxed);
    // A thread that has waited cannot know whether others still do, so it takes the lock with the waiters' bit set.
    uint32_t next = seen == 0 ? me | kWaiters : seen | kWaiters;
    if (seen != next && !word_.compare_exchange_strong(seen, next, std::memory_order_acquire, std::memory_order_relaxed))
      continue;
    if (seen == 0) return;
    futex(word_, FUTEX_WAIT, next, &kAWhile);
  }
}

// Release: our writes happen before the next holder's.
void Lock::unlock() noexcept {
  if ((word_.exchange(0, std::memory_order_release) & kWaiters) != 0) futex(word_, FUTEX_WAKE, 1);
  end_holding();
}

}  // namespace hm

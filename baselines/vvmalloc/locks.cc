#include "baselines/vvmalloc/locks.h"

#include <sched.h>
#include <time.h>

namespace hm::vvmalloc {
namespace {

// After so many attempts a spinning thread yields its processor once: the holder may have none.
constexpr int kLooks = 1000;

constinit thread_local char this_thread = 0;  // its address is the thread's name, also in the child of a fork

}  // namespace

uint64_t now_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
}

// Relaxed: the hint orders nothing; Lock does.
bool Mutex::lock() noexcept {
  bool contended = held_.load(std::memory_order_relaxed);
  uint64_t since = contended ? now_ns() : 0;
  if (!lock_.lock()) return false;
  held_.store(true, std::memory_order_relaxed);
  if (contended) waited_ns_ += now_ns() - since;
  return true;
}

void Mutex::unlock() noexcept {
  held_.store(false, std::memory_order_relaxed);
  lock_.unlock();
}

// Acquire: the previous holder's writes happen before ours.  The check for our own name is relaxed: only we write that.
bool SpinLock::lock() noexcept {
  const void* me = &this_thread;
  const void* nobody = nullptr;
  if (holder_.compare_exchange_strong(nobody, me, std::memory_order_acquire, std::memory_order_relaxed)) return true;
  if (nobody == me) return false;
  spin(me);
  return true;
}

void SpinLock::spin(const void* me) noexcept {
  uint64_t since = now_ns();
  for (int looks = 1;; ++looks) {
    const void* nobody = nullptr;
    // Reads before the swap, so that waiting threads do not take the line from each other.
    if (holder_.load(std::memory_order_relaxed) == nullptr &&
        holder_.compare_exchange_weak(nobody, me, std::memory_order_acquire, std::memory_order_relaxed))
      break;
    if (looks % kLooks == 0) sched_yield();
    else pause_briefly();
  }
  waited_ns_ += now_ns() - since;
}

// Release: our writes happen before the next holder's.
void SpinLock::unlock() noexcept { holder_.store(nullptr, std::memory_order_release); }

}  // namespace hm::vvmalloc

// A hook for the end of a thread: a function that runs among the destructors of thread-specific data.
//
// Destructors that run later may allocate again; the allocator must be able to serve them.
#pragma once
#include <pthread.h>

#include <atomic>
#include <cerrno>

#include "base/sizes.h"

namespace hm {

class ThreadExit {
 public:
  constexpr explicit ThreadExit(void (*function)(void*)) : function_(function) {}
  ThreadExit(const ThreadExit&) = delete;
  ThreadExit& operator=(const ThreadExit&) = delete;

  // Calls function(argument), argument not null, when the calling thread ends.  watch itself may call malloc, so the
  // thread's heap must be ready.  False: no key or no memory is left, and the function will not run.
  bool watch(void* argument) noexcept {
    int saved = errno;
    uint64_t key = key_.load(std::memory_order_acquire);
    if (key == kNone) key = make();
    bool watched = key != kNone && pthread_setspecific(static_cast<pthread_key_t>(key), argument) == 0;
    errno = saved;
    return watched;
  }

 private:
  static constexpr uint64_t kNone = UINT64_MAX;
  // Without a lock, which a fork would have to handle: if several threads make a key, one wins.
  uint64_t make() noexcept {
    pthread_key_t made;
    if (pthread_key_create(&made, function_) != 0) return kNone;
    uint64_t first = kNone;
    if (key_.compare_exchange_strong(first, made, std::memory_order_acq_rel)) return made;
    pthread_key_delete(made);
    return first;
  }
  void (*function_)(void*);
  std::atomic<uint64_t> key_{kNone};
};

}  // namespace hm

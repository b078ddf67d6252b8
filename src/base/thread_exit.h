// What an allocator does when a thread ends: a function that runs among the destructors of thread-specific data.
//
// Destructors that run later may allocate again; what serves them then is the allocator's business.
#pragma once
#include <pthread.h>

#include <cerrno>

#include "base/lock.h"

namespace hm {

class ThreadExit {
 public:
  constexpr explicit ThreadExit(void (*function)(void*)) : function_(function) {}
  ThreadExit(const ThreadExit&) = delete;
  ThreadExit& operator=(const ThreadExit&) = delete;

  // function(argument), argument not null, when the calling thread ends.  May call malloc: whatever belongs to the
  // thread must be in place.  False: no key or no memory is left, and the function will not run.
  bool watch(void* argument) noexcept {
    {
      LockGuard guard(lock_);
      if (!made_) made_ = pthread_key_create(&key_, function_) == 0;
      if (!made_) return false;
    }
    int saved = errno;
    bool watched = pthread_setspecific(key_, argument) == 0;
    errno = saved;
    return watched;
  }
  Lock& lock() noexcept { return lock_; }  // for fork

 private:
  void (*function_)(void*);
  Lock lock_;
  pthread_key_t key_ = 0;
  bool made_ = false;
};

}  // namespace hm

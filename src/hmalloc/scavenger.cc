#include "hmalloc/scavenger.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "hmalloc/options.h"

namespace hm {


namespace {

constexpr int kIdleRounds = 4;  // rounds in which nothing went back, after which the thread sleeps
constexpr size_t kStack = 64 * kKiB;

long futex(std::atomic<uint32_t>& word, int operation, uint32_t value) noexcept {
  return syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
}

void sleep_ms(size_t ms) noexcept {
  timespec time{static_cast<time_t>(ms / 1000), static_cast<long>(ms % 1000) * 1000000};
  nanosleep(&time, nullptr);
}

}  // namespace

// Relaxed here and below: the words hand over no memory, and the futex looks at `awake_` again before it sleeps.
void Scavenger::start_or_wake() noexcept {
  if (options.background == 0 || awake_.exchange(1, std::memory_order_relaxed) != 0) return;
  int saved = errno;  // the caller may be free
  if (started_.exchange(true, std::memory_order_relaxed)) futex(awake_, FUTEX_WAKE, 1);
  else start();
  errno = saved;
}

void Scavenger::start() noexcept {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, std::max<size_t>(kStack, static_cast<size_t>(PTHREAD_STACK_MIN)));
  sigset_t all, before;  // the program's signals are not for this thread
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  pthread_create(&thread, &attributes, run, this);  // if it fails, memory goes back by the program's own calls
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
}

void* Scavenger::run(void* self) noexcept {
  pthread_setname_np(pthread_self(), "hmalloc");
  static_cast<Scavenger*>(self)->rounds();
  return nullptr;
}

void Scavenger::rounds() noexcept {
  for (int idle = 0;;) {
    sleep_ms(std::max<size_t>(options.decay_ms / 2, 1));
    idle = work_() ? 0 : idle + 1;
    if (idle < kIdleRounds) continue;
    awake_.store(0, std::memory_order_relaxed);
    while (awake_.load(std::memory_order_relaxed) == 0) futex(awake_, FUTEX_WAIT, 0);
    idle = 0;
  }
}

void Scavenger::after_fork_in_child() noexcept {
  awake_.store(0, std::memory_order_relaxed);
  started_.store(false, std::memory_order_relaxed);
}

}  // namespace hm

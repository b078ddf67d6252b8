#include "upkeep/background.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/prctl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <climits>

#include "base/system_call.h"
#include "pages/options.h"

namespace hm {
namespace {

constexpr int kIdleRounds = 4;  // the thread sleeps after this many rounds in which nothing went back, or is still to
constexpr size_t kLargeStack = 8 * kMiB;
constexpr size_t kStack = 256 * kKiB;  // the C library takes the thread-local storage of all libraries out of it

timespec time_of(size_t ms) noexcept { return {static_cast<time_t>(ms / 1000), static_cast<long>(ms % 1000) * 1000000}; }

void futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* longest = nullptr) noexcept {
  system_call(SYS_futex, system_call_argument(&word), operation | FUTEX_PRIVATE_FLAG, value, system_call_argument(longest));
}

}  // namespace

int Background::start() noexcept {
  if (started_.exchange(true, std::memory_order_relaxed)) return 0;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, std::max<size_t>(kStack, static_cast<size_t>(PTHREAD_STACK_MIN)));
  sigset_t all, before;  // the program's signals are not for this thread
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  int error = pthread_create(&thread, &attributes, run, this);
  if (error == EINVAL) {  // they need more
    pthread_attr_setstacksize(&attributes, kLargeStack);
    error = pthread_create(&thread, &attributes, run, this);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (error != 0) started_.store(false, std::memory_order_relaxed);
  return error;
}

void* Background::run(void* self) noexcept {
  system_call(SYS_prctl, PR_SET_NAME, system_call_argument("hmalloc"));
  static_cast<Background*>(self)->rounds();
  return nullptr;
}

void Background::watch(void (*watcher)() noexcept, size_t nap_ms) noexcept {
  watchers_[watchers_[0] == nullptr ? 0 : 1] = watcher;
  nap_ms_ = std::min(nap_ms_, nap_ms);
}

void Background::call_watchers() noexcept {
  for (auto* each : watchers_)
    if (each != nullptr) each();
}

void Background::wake_up() noexcept {
  asleep_.store(0, std::memory_order_relaxed);
  futex(asleep_, FUTEX_WAKE, 1);
}

void Background::sleep(size_t ms) noexcept {
  for (size_t left = ms; left > 0;) {
    size_t nap = std::min(left, nap_ms_);
    timespec time = time_of(nap);
    system_call(SYS_nanosleep, system_call_argument(&time));
    call_watchers();
    left -= nap;
  }
}

void Background::rounds() noexcept {
  timespec nap = time_of(nap_ms_);
  for (int idle = 0;;) {
    sleep(std::max<size_t>(options.decay_ms / 2, 1));
    idle = work_() ? 0 : idle + 1;
    if (idle < kIdleRounds) continue;
    asleep_.store(1, std::memory_order_relaxed);
    if (work_()) asleep_.store(0, std::memory_order_relaxed);  // what came since the last round, and found it awake
    while (asleep_.load(std::memory_order_relaxed) != 0) {
      futex(asleep_, FUTEX_WAIT, 1, watchers_[0] == nullptr ? nullptr : &nap);
      call_watchers();
    }
    idle = 0;
  }
}

void Background::after_fork_in_child() noexcept {
  asleep_.store(0, std::memory_order_relaxed);
  started_.store(false, std::memory_order_relaxed);
}

}  // namespace hm

#include "naps.h"

#include <hmalloc/hmalloc.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "worker.h"

#if !defined(sigev_notify_thread_id)  // glibc has the field without the name
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace stress {
namespace {

constexpr long kMicrosecond = 1000;  // in nanoseconds

void nap(long microseconds) {
  timespec time{0, microseconds * kMicrosecond};
  nanosleep(&time, nullptr);
}

void nap_in_handler(int) {
  int saved = errno;
  nap(300);
  errno = saved;
}

}  // namespace

Naps::Naps(bool wanted) : wanted_(wanted) {
  if (!wanted_) return;
  struct sigaction action{};
  action.sa_handler = nap_in_handler;
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGUSR1;
  event.sigev_notify_thread_id = static_cast<pid_t>(syscall(SYS_gettid));
  itimerspec often{{0, 1700 * kMicrosecond}, {0, 1700 * kMicrosecond}};
  if (timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0) fail("no timer");
  timer_settime(timer_, 0, &often, nullptr);
}

Naps::~Naps() {
  if (wanted_) timer_delete(timer_);
}

void Naps::between_bursts(Random& random) const {
  if (wanted_ && random() % 2 == 0) nap(static_cast<long>(random() % 3000));
}

void collect_until_done() {
  while (!done.load(std::memory_order_relaxed)) hm_collect();
}

}  // namespace stress

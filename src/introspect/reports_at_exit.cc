#include "introspect/reports_at_exit.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/lock.h"
#include "base/process.h"
#include "base/report.h"
#include "base/system_call.h"
#include "introspect/profile_files.h"
#include "introspect/stats_files.h"
#include "pages/options.h"

namespace hm {
namespace {

constinit Lock reporting;
constinit bool reported = false;         // under `reporting`
constinit uint32_t watched_process = 0;  // the process that reports; a child of vfork() shares this but is another

void raise_termination() noexcept { system_call(SYS_tgkill, id_of_process(), system_call(SYS_gettid), SIGTERM); }

// Gathering takes locks.  If the interrupted thread holds one, it might deadlock; so it continues until it holds none,
// and then comes back here.  Once it holds none, it blocks other threads no more than a sleeping thread does.
void on_termination(int) noexcept {
  int saved = errno;
  bool mine = id_of_process() == watched_process;
  if (mine && holds_a_lock()) {
    when_it_holds_none(raise_termination);
  } else {
    if (mine) report_at_exit();
    struct sigaction usual{};
    usual.sa_handler = SIG_DFL;
    sigaction(SIGTERM, &usual, nullptr);
    raise_termination();  // blocked until this handler returns
  }
  errno = saved;
}

bool is_asked_for() noexcept { return stats_are_asked_for() || options.profile != 0; }

}  // namespace

void watch_for_termination() noexcept {
  if (!is_asked_for()) return;
  watched_process = id_of_process();
  struct sigaction found{};
  if (sigaction(SIGTERM, nullptr, &found) != 0 || (found.sa_flags & SA_SIGINFO) != 0 || found.sa_handler != SIG_DFL) return;
  struct sigaction ours{};
  ours.sa_handler = on_termination;
  ours.sa_flags = SA_ONSTACK | SA_RESTART;
  sigaction(SIGTERM, &ours, nullptr);
}

void report_at_exit() noexcept {
  if (!is_asked_for()) return;
  if (holds_a_lock()) {  // exit() in a signal handler
    FdWriter(STDERR_FILENO) << "hmalloc: no report: the process was ended in the middle of an allocation\n";
    return;
  }
  LockGuard guard(reporting);
  if (reported) return;
  reported = true;
  write_last_stats();
  if (options.profile != 0) write_last_profile();
}

void reports_after_fork_in_child() noexcept {
  reporting.reset_after_fork(0);
  watched_process = id_of_process();
  reported = false;
}

}  // namespace hm

#include "introspect/stats_at_exit.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/lock.h"
#include "base/process.h"
#include "base/system_call.h"
#include "introspect/stats.h"
#include "pages/options.h"

namespace hm {
namespace {

constinit Lock printing;
constinit bool printed = false;          // under `printing`
constinit uint32_t watched_process = 0;  // the process that prints; a child of vfork() shares this but is another
constinit char record[128 * kKiB];       // under `printing`; touched only if there is something to print

// %p is the process id, so that each process gets its own file; %% is a percent sign.
class FileName {
 public:
  explicit FileName(const char* pattern) noexcept {
    for (; *pattern != '\0'; ++pattern) {
      if (pattern[0] == '%' && pattern[1] == 'p') add_number(id_of_process());
      else add(*pattern);
      if (pattern[0] == '%' && (pattern[1] == 'p' || pattern[1] == '%')) ++pattern;
    }
  }
  // Null if it is too long.
  const char* get() const noexcept { return used_ < sizeof name_ ? name_ : nullptr; }

 private:
  void add(char c) noexcept {
    if (used_ < sizeof name_ - 1) name_[used_] = c;
    ++used_;
  }
  void add_number(uint64_t number) noexcept {
    if (number >= 10) add_number(number / 10);
    add(static_cast<char>('0' + number % 10));
  }
  char name_[2 * kMaxPath] = {};
  size_t used_ = 0;
};

int open_file() noexcept {
  FileName name(options.stats_file);
  long fd = -1;
  if (name.get() != nullptr)
    fd =
        system_call(SYS_openat, AT_FDCWD, system_call_argument(name.get()), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) FdWriter(STDERR_FILENO) << "hmalloc: cannot write HMALLOC_STATS_FILE=" << options.stats_file << "\n";
  return static_cast<int>(fd);
}

void raise_termination() noexcept { system_call(SYS_tgkill, id_of_process(), system_call(SYS_gettid), SIGTERM); }

// Gathering takes locks.  If the interrupted thread holds one, it might deadlock; so it continues until it holds none,
// and then comes back here.  Once it holds none, it blocks other threads no more than a sleeping thread does.
void on_termination(int) noexcept {
  int saved = errno;
  bool mine = id_of_process() == watched_process;
  if (mine && holds_a_lock()) {
    when_it_holds_none(raise_termination);
  } else {
    if (mine) print_stats_at_exit();
    struct sigaction usual{};
    usual.sa_handler = SIG_DFL;
    sigaction(SIGTERM, &usual, nullptr);
    raise_termination();  // blocked until this handler returns
  }
  errno = saved;
}

}  // namespace

void watch_for_termination() noexcept {
  if (options.show_stats == 0) return;
  watched_process = id_of_process();
  struct sigaction found{};
  if (sigaction(SIGTERM, nullptr, &found) != 0 || (found.sa_flags & SA_SIGINFO) != 0 || found.sa_handler != SIG_DFL) return;
  struct sigaction ours{};
  ours.sa_handler = on_termination;
  ours.sa_flags = SA_ONSTACK | SA_RESTART;
  sigaction(SIGTERM, &ours, nullptr);
}

void print_stats_at_exit() noexcept {
  if (options.show_stats == 0) return;
  if (holds_a_lock()) {  // exit() in a signal handler
    FdWriter(STDERR_FILENO) << "hmalloc: no statistics: the process was ended in the middle of an allocation\n";
    return;
  }
  LockGuard guard(printing);
  if (printed) return;
  printed = true;
  int fd = options.stats_file[0] == '\0' ? STDERR_FILENO : open_file();
  if (fd < 0) return;
  print_stats(FdWriter(fd, record), options.show_stats == 2);
  if (fd != STDERR_FILENO) system_call(SYS_close, fd);
}

void stats_after_fork_in_child() noexcept {
  printing.reset_after_fork(0);
  watched_process = id_of_process();
  printed = false;
}

}  // namespace hm

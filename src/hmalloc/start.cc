// The library's start and end in a process.
#include <pthread.h>
#include <unistd.h>

#include <cerrno>

#include "hmalloc/options.h"
#include "base/report.h"
#include "hmalloc/registry.h"
#include "hmalloc/background.h"
#include "hmalloc/stats.h"

#include <hmalloc/hmalloc.h>

namespace hm {
namespace {

void before_fork() noexcept { registry.before_fork(); }
void in_parent() noexcept { registry.after_fork_in_parent(); }
void in_child() noexcept {
  registry.after_fork_in_child();
  background.after_fork_in_child();
}

__attribute__((constructor(101))) void start() noexcept {
  read_options();
  pthread_atfork(before_fork, in_parent, in_child);
  if (options.background != 0) background.start();
  if (options.verbose == 0) return;
  Text(STDERR_FILENO) << "hmalloc " << HM_VERSION_STRING << ": active in process " << static_cast<uint64_t>(getpid())
                      << " (" << program_invocation_short_name << ")\n";
  print_options(STDERR_FILENO);
}

__attribute__((destructor(101))) void finish() noexcept { print_stats_at_exit(); }

}  // namespace

void link_start() noexcept {}

}  // namespace hm

// The library's start and end in a process.
#include <pthread.h>
#include <unistd.h>

#include <cerrno>

#include "base/process.h"
#include "base/report.h"
#include "hmalloc/options.h"
#include "hmalloc/registry.h"
#include "hmalloc/scavenger.h"
#include "hmalloc/stats.h"

#include <hmalloc/hmalloc.h>

namespace hm {
namespace {

void repair(uint32_t before) noexcept {
  registry.repair(before);
  scavenger.after_fork_in_child();
}

__attribute__((constructor(101))) void start() noexcept {
  read_options();
  repair_forks_with(repair);
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
  if (options.verbose == 0) return;
  Text(STDERR_FILENO) << "hmalloc " << HM_VERSION_STRING << ": active in process " << static_cast<uint64_t>(getpid())
                      << " (" << program_invocation_short_name << ")\n";
  print_options(STDERR_FILENO);
}

__attribute__((destructor(101))) void finish() noexcept { print_stats_at_exit(); }

}  // namespace

void link_start() noexcept {}

}  // namespace hm

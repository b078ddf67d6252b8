// What a baseline does when a process loads it and when it ends.
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "base/option_parser.h"
#include "baselines/contract.h"

namespace hm {
namespace {

// <PREFIX>STATS_FILE: at exit the counters are appended to it, one line per process.
char stats_file[kMaxPath];

void print_counters(int fd) noexcept {
  Usage usage = baseline::usage();
  FdWriter text(fd);
  text << "{\"allocator\":\"" << kLibraryName << "\",\"mapped\":" << uint64_t{usage.mapped}
       << ",\"allocated\":" << uint64_t{usage.allocated};
  baseline::write_counters(text);
  text << "}\n";
}

__attribute__((constructor(101))) void start() noexcept {
  baseline::start();
  pthread_atfork(baseline::before_fork, baseline::after_fork_in_parent, baseline::after_fork_in_child);
  // A copy: programs write over their environment.
  const char* path = secure_getenv(HM_BASELINE_PREFIX "STATS_FILE");
  if (path == nullptr) return;
  if (strlen(path) < sizeof stats_file) memcpy(stats_file, path, strlen(path) + 1);
  else FdWriter(STDERR_FILENO) << kLibraryName << ": " HM_BASELINE_PREFIX "STATS_FILE is too long; ignored\n";
}

__attribute__((destructor(101))) void finish() noexcept {
  if (stats_file[0] == '\0') return;
  int fd = open(stats_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) {
    FdWriter(STDERR_FILENO) << kLibraryName << ": cannot write " HM_BASELINE_PREFIX "STATS_FILE=" << stats_file << "\n";
    return;
  }
  flock(fd, LOCK_EX);  // best effort: lines of processes that end together must not mix
  print_counters(fd);
  close(fd);
}

}  // namespace

void print_usage() noexcept { print_counters(STDERR_FILENO); }

}  // namespace hm

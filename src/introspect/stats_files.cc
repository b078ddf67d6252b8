#include "introspect/stats_files.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/system_call.h"
#include "introspect/stats.h"
#include "introspect/while_running.h"
#include "upkeep/background.h"

namespace hm {
namespace {

constinit OneWriter writer;
constinit Trigger trigger("STATS_TRIGGER", options.stats_trigger);
constinit char record[128 * kKiB];              // the writer's; touched only if there is something to print
constinit bool fails = false;                   // the last one could not be written, and one line has said so; the writer's
constinit std::atomic<uint64_t> written_ms{0};  // the writer's; relaxed: a hint to others

// node_exporter and others read such a file at any time.
bool is_metrics_file() noexcept {
  constexpr const char kEnd[] = ".prom";
  size_t length = strlen(options.stats_file), end = sizeof kEnd - 1;
  return length >= end && strcmp(options.stats_file + length - end, kEnd) == 0;
}

int form() noexcept {
  if (is_metrics_file()) return HM_STATS_OPENMETRICS;
  return options.show_stats == 0 ? HM_STATS_TEXT : static_cast<int>(options.show_stats) - 1;
}

bool print_to(int fd) noexcept {
  FdWriter out(fd, record);
  print_stats(out, form());
  out.flush();
  return out.error() == 0;
}

bool print_and_close(int fd) noexcept {
  bool printed = fd >= 0 && print_to(fd);
  if (fd >= 0) system_call(SYS_close, fd);
  return printed;
}

// Nobody sees half of it.  The name beside is no other process's, even if that has the same name and number in a container of
// its own.
bool replace_file(int flags) noexcept {
  Suffix unfinished{".new.", os::now_ns()};
  int fd = open_output(options.stats_file, O_EXCL | flags, unfinished);
  if (fd < 0) return false;
  system_call(SYS_fchmod, fd, 0644);  // another user's process reads it, whatever umask this one has
  if (print_and_close(fd) && rename_output(options.stats_file, unfinished, {})) return true;
  remove_output(options.stats_file, unfinished);
  return false;
}

bool write_record(int flags) noexcept {
  if (options.stats_file[0] == '\0') {
    print_to(STDERR_FILENO);
    return true;
  }
  if (is_metrics_file() && !output_is_special(options.stats_file)) return replace_file(flags);
  return print_and_close(open_output(options.stats_file, O_APPEND | flags));
}

bool write_or_complain(int flags) noexcept {
  bool written = write_record(flags);
  if (!written && !fails) complain_of_output("STATS_FILE", options.stats_file);
  fails = !written;
  return written;
}

bool is_due(uint64_t now_ms) noexcept {
  uint64_t last = written_ms.load(std::memory_order_relaxed);
  return options.stats_interval != 0 && now_ms >= last && now_ms - last >= options.stats_interval;
}

// By any thread.  One that holds a lock of the allocator's would make others wait for the disk.
void look() noexcept {
  uint64_t now = os::now_ms();
  if ((!is_due(now) && !trigger.is_due(now)) || holds_a_lock()) return;
  writer.while_running([=] {
    if (is_due(now)) {
      written_ms.store(now, std::memory_order_relaxed);
      write_or_complain(kDoNotWait);
    }
    if (trigger.is_due(now)) trigger.look(now, [] { return write_or_complain(kDoNotWait); });
  });
}

}  // namespace

void watch_for_stats() noexcept {
  if (!stats_are_written_while_running()) return;
  written_ms.store(os::now_ms(), std::memory_order_relaxed);
  writer.is_the_process();
  background.watch(look, options.stats_interval == 0 ? kLongestNap : std::min(options.stats_interval, kLongestNap));
}

void write_last_stats() noexcept {
  writer.at_the_end([] {
    if (options.show_stats != 0) write_or_complain(0);
  });
}

void stats_files_after_fork_in_child(uint32_t before) noexcept {
  writer.after_fork_in_child(before);
  written_ms.store(os::now_ms(), std::memory_order_relaxed);
}

}  // namespace hm

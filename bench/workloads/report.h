// The result of a workload: one JSON line on standard output, and what the kernel knows about this process.
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "memory.h"
#include "workers.h"

namespace bench {

// A field of a file in /proc, in kilobytes.  Reading it allocates nothing.
inline long kernel_kb(const char* path, const char* field) {
  char text[4096];
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t length = file < 0 ? 0 : read(file, text, sizeof text - 1);
  if (file >= 0) close(file);
  text[length > 0 ? length : 0] = 0;
  const char* line = std::strstr(text, field);
  return line == nullptr ? 0 : std::strtol(line + std::strlen(field), nullptr, 10);
}
// Counted page by page; the counter behind VmRSS lags by up to a batch per CPU.
inline long resident_kb() { return kernel_kb("/proc/self/smaps_rollup", "\nRss:"); }

// The file that malloc comes from; the runner compares it with the allocator that it meant to load.
inline const char* malloc_library() {
  Dl_info info{};
  void* symbol = dlsym(RTLD_DEFAULT, "malloc");
  return symbol != nullptr && dladdr(symbol, &info) != 0 ? info.dli_fname : "";
}

inline std::string field(const char* name, double value) {
  char text[96];
  std::snprintf(text, sizeof text, ",\"%s\":%.10g", name, value);
  return text;
}

// A parameter sweep within one run.
using Series = std::vector<std::pair<double, double>>;
inline std::string field(const char* name, const Series& points) {
  std::string text;
  for (auto [x, y] : points) {
    char point[64];
    std::snprintf(point, sizeof point, "%s[%.10g,%.10g]", text.empty() ? "" : ",", x, y);
    text += point;
  }
  return std::string(",\"") + name + "\":[" + text + "]";
}

// ops: of all threads.  more: further field()s.
inline void report(const char* workload, unsigned threads, double ops, const Span& span, const std::string& more = {}) {
  long vm_peak = kernel_kb("/proc/self/status", "VmPeak:");
  long vm_hwm = kernel_kb("/proc/self/status", "VmHWM:");
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf(
      "{\"workload\":\"%s\",\"api\":\"%s\",\"threads\":%u,\"ops\":%.0f,\"ns_per_op\":%.4f,\"seconds\":%.9f,"
      "\"cpu_share\":%.4f,\"vm_peak_kb\":%ld,\"vm_hwm_kb\":%ld,\"minor_faults\":%ld,"
      "\"malloc_library\":\"%s\"%s}\n",
      workload, kApi, threads, ops, span.elapsed / ops * 1e9, span.elapsed, span.cpu_share, vm_peak, vm_hwm, usage.ru_minflt,
      malloc_library(), more.c_str());
  if (std::fflush(stdout) == 0) return;
  std::fprintf(stderr, "%s: the result cannot be written: %s\n", workload, std::strerror(errno));
  std::_Exit(1);
}

}  // namespace bench

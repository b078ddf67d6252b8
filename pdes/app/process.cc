#include "app/process.h"

#include <dlfcn.h>
#include <sys/resource.h>
#include <time.h>

#include <cstdlib>
#include <fstream>
#include <string_view>

namespace pdes::app {

namespace {

long kilobytes(std::string_view field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field)) return std::strtol(line.c_str() + field.size(), nullptr, 10);
  return 0;
}

}  // namespace

Process this_process() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  Dl_info info{};
  void* symbol = dlsym(RTLD_DEFAULT, "malloc");
  bool known = symbol != nullptr && dladdr(symbol, &info) != 0;
  return {kilobytes("VmHWM:"), kilobytes("VmPeak:"), usage.ru_minflt, known ? info.dli_fname : ""};
}

double cpu_seconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

}  // namespace pdes::app

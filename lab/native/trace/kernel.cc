#include "kernel.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace hm::trace {
namespace {

long kernel_kb(const char* path, const char* field) {
  char text[4096];
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t length = file < 0 ? 0 : read(file, text, sizeof text - 1);
  if (file >= 0) close(file);
  text[length > 0 ? length : 0] = 0;
  const char* line = std::strstr(text, field);
  return line == nullptr ? 0 : std::strtol(line + std::strlen(field), nullptr, 10);
}

uint64_t clock_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

int load_object(dl_phdr_info* object, size_t, void*) {
  auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  for (const ElfW(Phdr)* segment = object->dlpi_phdr; segment != object->dlpi_phdr + object->dlpi_phnum; ++segment) {
    if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W) != 0) continue;
    uintptr_t begin = (object->dlpi_addr + segment->p_vaddr) & ~(page - 1);
    uintptr_t end = object->dlpi_addr + segment->p_vaddr + segment->p_filesz;
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_READ);
  }
  return 0;
}

}  // namespace

long status_kb(const char* field) { return kernel_kb("/proc/self/status", field); }
long resident_kb() { return kernel_kb("/proc/self/smaps_rollup", "\nRss:"); }
uint64_t wall_ns() { return clock_ns(CLOCK_MONOTONIC); }
uint64_t thread_cpu_ns() { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

void reset_peak_resident() {
  int file = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  ssize_t written = write(file, "5", 1);
  static_cast<void>(written);  // if the kernel cannot, the peak is that of the whole process
  close(file);
}

long minor_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

void load_code() { dl_iterate_phdr(load_object, nullptr); }

const char* malloc_library() {
  Dl_info info{};
  void* symbol = dlsym(RTLD_DEFAULT, "malloc");
  return symbol != nullptr && dladdr(symbol, &info) != 0 ? info.dli_fname : "";
}

}  // namespace hm::trace

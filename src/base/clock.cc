#include "base/clock.h"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <time.h>

#include <atomic>
#include <cstring>

#include "base/frozen.h"
#include "base/system_call.h"

namespace hm::os {
namespace {

using ReadClock = int(clockid_t, timespec*);
#if defined(__aarch64__)
constexpr char kReadClock[] = "__kernel_clock_gettime";
#else
constexpr char kReadClock[] = "__vdso_clock_gettime";
#endif

Frozen<std::atomic<ReadClock*>> read_clock;  // relaxed: it points to nothing that this process has written
std::atomic<uint64_t> latest_ms{0};          // relaxed: this clock may lag

template <class T>
const T* at(uintptr_t address) noexcept {
  return reinterpret_cast<const T*>(address);
}

// Searches the kernel's image, an ELF file, in which the symbol table ends where the table of names begins.
ReadClock* find_in(uintptr_t image) noexcept {
  auto* header = at<ElfW(Ehdr)>(image);
  auto* segments = at<ElfW(Phdr)>(image + header->e_phoff);
  const ElfW(Dyn)* entry = nullptr;
  uintptr_t bias = 0, symbols = 0, names = 0;
  size_t length = 0;  // of the table of names
  for (size_t i = 0; i < header->e_phnum; ++i) {
    if (segments[i].p_type == PT_LOAD && bias == 0) bias = image + segments[i].p_offset - segments[i].p_vaddr;
    if (segments[i].p_type == PT_DYNAMIC) entry = at<ElfW(Dyn)>(image + segments[i].p_offset);
  }
  for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_SYMTAB) symbols = bias + entry->d_un.d_ptr;
    if (entry->d_tag == DT_STRTAB) names = bias + entry->d_un.d_ptr;
    if (entry->d_tag == DT_STRSZ) length = entry->d_un.d_val;
  }
  for (; symbols != 0 && symbols + sizeof(ElfW(Sym)) <= names; symbols += sizeof(ElfW(Sym))) {
    auto* symbol = at<ElfW(Sym)>(symbols);
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_name >= length) continue;
    if (strcmp(at<char>(names + symbol->st_name), kReadClock) == 0)
      return reinterpret_cast<ReadClock*>(bias + symbol->st_value);
  }
  return nullptr;
}

uint64_t nanoseconds(clockid_t clock) noexcept {
  timespec now{};
  ReadClock* read = read_clock.load(std::memory_order_relaxed);
  if (read == nullptr || read(clock, &now) != 0) system_call(SYS_clock_gettime, clock, system_call_argument(&now));
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

void find_clock() noexcept {
  uintptr_t image = getauxval(AT_SYSINFO_EHDR);
  if (image != 0) read_clock.store(find_in(image), std::memory_order_relaxed);
  read_clock.freeze();
}

uint64_t now_ms() noexcept {
  uint64_t now = nanoseconds(CLOCK_MONOTONIC_COARSE) / 1'000'000;
  if (recent_ms() != now) latest_ms.store(now, std::memory_order_relaxed);  // or threads take its line from each other
  return now;
}
uint64_t recent_ms() noexcept { return latest_ms.load(std::memory_order_relaxed); }
uint64_t now_ns() noexcept { return nanoseconds(CLOCK_MONOTONIC); }
uint64_t cpu_ns() noexcept { return nanoseconds(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace hm::os

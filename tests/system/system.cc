#include "system.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <thread>

namespace hm::test {
namespace {

size_t page_size() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

void* map_page() { return mmap(nullptr, page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

// In silence: an emulator that dies says so.
template <class Body>
bool child_ends_with_true(Body body) {
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    for (int output : {STDOUT_FILENO, STDERR_FILENO}) dup2(nowhere, output);
    _exit(body() ? 0 : 1);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0;
}

bool empties_pages() {
  auto* page = static_cast<volatile char*>(map_page());
  *page = 1;
  if (madvise(const_cast<char*>(page), page_size(), MADV_WIPEONFORK) != 0) return false;
  return child_ends_with_true([=] { return *page == 0; });
}

volatile bool child_was_here;

bool shares_with_vfork() {
  child_was_here = false;
  pid_t child = vfork();
  if (child == 0) {
    child_was_here = true;
    _exit(0);
  }
  return waitpid(child, nullptr, 0) == child && child_was_here;
}

bool starts_threads_in_children() {
  std::atomic<bool> stop{false};
  std::thread beside([&] { stop.wait(false); });
  bool started = child_ends_with_true([] {
    std::thread([] {}).join();
    return true;
  });
  stop.store(true);
  stop.notify_one();
  beside.join();
  return started;
}

// Who takes any advice follows none.
bool heeds_advice() {
  constexpr int kNoAdvice = 12345;
  return madvise(map_page(), page_size(), kNoAdvice) != 0;
}

bool limits_addresses() {
  return child_ends_with_true([] {
    rlimit none{0, 0};
    return setrlimit(RLIMIT_AS, &none) == 0 && map_page() == MAP_FAILED;
  });
}

// Whether the system counts no more than the mappings that it lists.
bool counts_the_program() {
  size_t listed = 0, counted = 0;
  char line[512];
  FILE* maps = fopen("/proc/self/maps", "r");
  uintptr_t from, to;
  while (fgets(line, sizeof line, maps) != nullptr)
    if (sscanf(line, "%lx-%lx", &from, &to) == 2) listed += to - from;
  fclose(maps);
  FILE* statm = fopen("/proc/self/statm", "r");
  bool read = fscanf(statm, "%zu", &counted) == 1;
  fclose(statm);
  return read && counted * page_size() <= listed + (1u << 20);
}

// Whether the code that runs is among the mappings of the thread that runs it.
bool lists_by_thread() {
  bool listed = false;
  char line[512], executable;
  FILE* maps = fopen("/proc/thread-self/maps", "r");
  if (maps == nullptr) return false;
  uintptr_t from, to, here = reinterpret_cast<uintptr_t>(&lists_by_thread);
  while (fgets(line, sizeof line, maps) != nullptr)
    if (sscanf(line, "%lx-%lx %*c%*c%c", &from, &to, &executable) == 3)
      listed = listed || (from <= here && here < to && executable == 'x');
  fclose(maps);
  return listed;
}

bool filters_calls() {
  return child_ends_with_true([] {
    sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    sock_fprog program{1, &allow};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
  });
}

struct Start {  // of an ELF file, to the processor that it is for
  std::array<char, 20> bytes{};
  explicit Start(const char* path) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || read(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) bytes = {};
    close(file);
  }
};

bool runs_the_same_programs() { return memcmp(&Start("/proc/self/exe").bytes[18], &Start("/bin/sh").bytes[18], 2) == 0; }

}  // namespace

const Property kEmptiesPages{
    "empties_pages", "this system does not empty a page in the child of a fork, as MADV_WIPEONFORK asks", empties_pages};
const Property kSharesWithVfork{"shares_with_vfork", "the child of a vfork has a copy of the memory here",
                                shares_with_vfork};
const Property kStartsThreadsInChildren{"starts_threads_in_children",
                                        "the child of a fork beside threads cannot start one here: the emulator aborts",
                                        starts_threads_in_children};
const Property kHeedsAdvice{"heeds_advice", "this system takes any advice about memory and follows none", heeds_advice};
const Property kLimitsAddresses{"limits_addresses", "RLIMIT_AS limits nothing here", limits_addresses};
const Property kCountsTheProgram{"counts_the_program", "more memory than the program's is counted here: the emulator's",
                                 counts_the_program};
const Property kListsByThread{"lists_by_thread", "a thread's own file in /proc lists the emulator's mappings here",
                              lists_by_thread};
const Property kFiltersCalls{"filters_calls", "there is no seccomp here", filters_calls};
const Property kRunsTheSamePrograms{"runs_the_same_programs", "what a program starts here is for another processor",
                                    runs_the_same_programs};

std::span<const Property* const> all_properties() {
  static constexpr const Property* kAll[] = {&kEmptiesPages,  &kSharesWithVfork, &kStartsThreadsInChildren,
                                             &kHeedsAdvice,   &kLimitsAddresses, &kCountsTheProgram,
                                             &kListsByThread, &kFiltersCalls,    &kRunsTheSamePrograms};
  return kAll;
}

}  // namespace hm::test

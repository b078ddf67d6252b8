// What the library does when a process loads it, when it ends, and in the child of a fork.
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/address_map.h"
#include "base/clock.h"
#include "base/memory_tags.h"
#include "base/process.h"
#include "base/report.h"
#include "base/secret.h"
#include "guard/faults.h"
#include "guard/guarded_blocks.h"
#include "introspect/layout.h"
#include "introspect/profile_files.h"
#include "introspect/reports_at_exit.h"
#include "introspect/stats_files.h"
#include "large/huge.h"  // IWYU pragma: keep (for the hardened library)
#include "pages/options.h"
#include "profile/profile.h"
#include "profile/sampler.h"
#include "threads/registry.h"
#include "upkeep/background.h"
#include "upkeep/hole_passes.h"
#include "upkeep/pressure.h"

#include <hmalloc/hmalloc.h>

namespace hm {
namespace {

void repair(uint32_t before) noexcept {
  registry.repair(before);
  repair_profile(before);
  hole_passes.repair(before);
  background.after_fork_in_child();
  pressure.after_fork_in_child();
  reports_after_fork_in_child();
  profile_files_after_fork_in_child(before);
  stats_files_after_fork_in_child(before);
}

// Asks malloc itself whether it is ours: in a position-dependent program the address of malloc is the program's own,
// and another library's malloc may forward its calls to ours.
bool is_active() noexcept {
  void* block = malloc(1);
  bool ours = block != nullptr && AddressMap::kind(address_of(memory_tags.strip(block))) != ChunkKind::kForeign;
  free(block);
  return ours;
}

// Looks at the program's own headers: that opens and allocates nothing.
bool lies_in_program(uintptr_t address) noexcept {
  auto* headers = reinterpret_cast<const ElfW(Phdr)*>(getauxval(AT_PHDR));
  size_t count = headers == nullptr ? 0 : getauxval(AT_PHNUM);
  uintptr_t base = 0;
  for (size_t i = 0; i < count; ++i)
    if (headers[i].p_type == PT_PHDR) base = address_of(headers) - headers[i].p_vaddr;
  for (size_t i = 0; i < count; ++i)
    if (headers[i].p_type == PT_LOAD && address - base - headers[i].p_vaddr < headers[i].p_memsz) return true;
  return false;
}

void say_whether_active() noexcept {
  constexpr const char* kVariant = kHardened ? " hardened" : kChecked ? " checked" : "";
  bool active = is_active();
  FdWriter line(STDERR_FILENO);
  line << "hmalloc " << HM_VERSION_STRING << kVariant << ": " << (active ? "active" : "loaded") << " in process "
       << uint64_t{id_of_process()} << " (" << program_invocation_short_name << ")";
  if (active) line << "\n";
  else if (lies_in_program(reinterpret_cast<uintptr_t>(&malloc)))
    line << " but not active: the program defines malloc itself\n";
  else line << " but not active: the malloc of another library comes first\n";
}

bool start_guard() noexcept {
  bool has_handles = have_heap() && my_heap()->handed_out;  // by which blocks are freed that nobody looks at
  if (!kHardened && !has_handles && guarded_blocks.start()) return answer_faults(), sampler.start_for_guard(), true;
  FdWriter(STDERR_FILENO) << kLibraryName << ": HMALLOC_GUARD ignored: "
                          << (kHardened ? "this library guards blocks in other ways\n"
                                        : "no memory, or no stacks can be taken\n");
  return false;
}

// Threads that run already would pass tagged pointers to a system that refuses them.
bool start_tags() noexcept {
  bool alone = has_one_thread() && id_of_process() == my_thread_id();
  if (alone && memory_tags.start()) return true;
  FdWriter(STDERR_FILENO) << kLibraryName << ": HMALLOC_TAGS ignored: "
                          << (!alone      ? "there may be other threads already\n"
                              : kHardened ? "this processor has no memory tags\n"
                                          : "it is an option of the hardened library\n");
  return false;
}

// Nobody draws a key any more: a thread that was started before has had blocks.
void freeze() noexcept {
  if (kHardened) secret.key();
  secret.freeze();
  memory_tags.freeze();
  options.freeze();
}

__attribute__((constructor(101))) void start() noexcept {
  os::find_clock();
  complete_layout();
  read_options();
  repair_forks_with(repair);
  pthread_atfork(nullptr, nullptr, process_was_forked);
  watch_for_termination();
  watch_for_stats();
  watch_for_profile_trigger();
  if (options.tags != 0 && !start_tags()) options.tags = 0;
  if (options.background != 0) background.start();
  if (options.guard != 0 && !start_guard()) options.guard = 0;
  if (options.profile != 0 && start_profile(options.profile) != 0) {
    options.profile = 0;
    FdWriter(STDERR_FILENO) << kLibraryName
                            << ": no profile: no stacks can be taken, by glibc's backtrace() and libgcc_s.so.1\n";
  }
  freeze();
  if (options.verbose == 0) return;
  say_whether_active();
  print_options(STDERR_FILENO);
}

__attribute__((destructor(101))) void finish() noexcept {
#if defined(HM_HARDENED)
  if (have_heap()) my_thread_heap().quarantine().check();
  check_freed_huge_blocks();
#endif
  report_at_exit();
}

}  // namespace

void link_start() noexcept {}

}  // namespace hm

#include "base/process.h"

#include <sys/syscall.h>

#include <new>

#include "base/frozen.h"
#include "base/os_pages.h"
#include "base/system_call.h"

// Of the C library, since glibc 2.32: not zero as long as the process has never had a second thread.
extern "C" [[gnu::weak]] char __libc_single_threaded;  // NOLINT(bugprone-reserved-identifier)

namespace hm {
namespace {

constinit KnownProcess first_known{kFirstProcess, 0};  // until the page exists
constinit uint32_t last_number = kFirstProcess;
using Repair = void (*)(uint32_t before) noexcept;
struct Repairer {
  Repair repair = nullptr;  // null: nothing is to be repaired, and the number stays
};
constinit Frozen<Repairer> repairer;

uint32_t id_of_thread() noexcept { return static_cast<uint32_t>(system_call(SYS_gettid)); }

// The first thread that finds the process new repairs it; the others wait.  Meanwhile it may take locks, because its name
// has the process's present number.  Relaxed on finding it new: no thread stored that value; waiters acquire below.
void repair_if_new() noexcept {
  std::atomic<uint32_t>& number = known_process->number;
  uint32_t found = kNewProcess;
  if (number.compare_exchange_strong(found, kProcessInRepair, std::memory_order_relaxed)) {
    uint32_t before = my_name.id;
    my_name = {id_of_thread(), kProcessInRepair};
    repairer.repair(before);
    known_process->id = id_of_process();
    my_name.process = ++last_number;
    number.store(last_number, std::memory_order_release);
    return;
  }
  while (number.load(std::memory_order_acquire) == kProcessInRepair) system_call(SYS_sched_yield);
}

}  // namespace

bool has_one_thread() noexcept { return &__libc_single_threaded != nullptr && __libc_single_threaded != 0; }

uint32_t id_of_process() noexcept { return static_cast<uint32_t>(system_call(SYS_getpid)); }

constinit KnownProcess* known_process = &first_known;
constinit thread_local ThreadName my_name{0, kNoProcess};

// A child of vfork writes to its parent's variables and must not leave its own id there.  Relaxed: what was repaired
// has been acquired already.
uint32_t ask_thread_id() noexcept {
  ThreadName name;
  do {  // again if a signal handler has forked meanwhile: this is another process then
    repair_if_new();
    name.process = known_process->number.load(std::memory_order_relaxed);
    name.id = id_of_thread();
  } while (name.process == kNewProcess || name.process != known_process->number.load(std::memory_order_relaxed));
  if (known_process->id == 0 || known_process->id == id_of_process()) my_name = name;
  return name.id;
}

// Without the page we depend on the C library's reports.
void repair_forks_with(Repair repair) noexcept {
  repairer.repair = repair;
  repairer.freeze();
  first_known.id = id_of_process();
  void* page = os::map(os::page_size(), os::page_size());
  if (page == nullptr) return;
  if (os::empty_in_children(page, os::page_size())) known_process = new (page) KnownProcess{++last_number, first_known.id};
  else os::unmap(page, os::page_size());
}

// Whatever the number says if the page was not emptied: a signal handler may have forked in the middle of the parent's
// repair.  Id 0: it was emptied, and whoever has begun the repair goes on with it.
void process_was_forked() noexcept {
  uint32_t id = known_process->id;
  if (id != 0 && id != id_of_process()) known_process->number.store(kNewProcess, std::memory_order_relaxed);
  repair_if_new();
}

uint32_t rename_thread() noexcept {
  uint32_t before = my_name.id;
  my_name = {0, kNoProcess};
  return before;
}

}  // namespace hm

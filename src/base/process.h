// Which process this is, and which of its threads.  The child of a fork has the memory of all threads of its parent but
// only one thread: what the others were changing must be repaired before the child takes its first lock, even if the C
// library does not report the fork (_Fork, a bare clone).  So the number of the process lies in a page that the system
// empties in every child, and a thread checks it whenever it takes a lock.
#pragma once
#include <atomic>

#include "base/sizes.h"

namespace hm {

struct KnownProcess {
  std::atomic<uint32_t> number;  // kNewProcess: not repaired yet; a vfork child shares its parent's number
  uint32_t id;                   // 0: not known yet
};
struct ThreadName {
  uint32_t id;       // the system's thread id
  uint32_t process;  // the process's number when we asked for the id
};
inline constexpr uint32_t kNewProcess = 0, kProcessInRepair = 1, kFirstProcess = 2, kNoProcess = UINT32_MAX;

extern constinit KnownProcess* known_process;
extern constinit thread_local ThreadName my_name;

uint32_t id_of_process() noexcept;  // the system's; a child of vfork has its own
HM_COLD uint32_t ask_thread_id() noexcept;
// The calling thread's id, never zero.  Relaxed: the number changes only in a child, and a thread that sees that asks again.
inline uint32_t my_thread_id() noexcept {
  bool known = my_name.process == known_process->number.load(std::memory_order_relaxed);
  return HM_LIKELY(known) ? my_name.id : ask_thread_id();
}

// Called at load: in each child of a fork repair(before) runs once, before any thread of the child has a lock.  The
// locks of the thread that runs it name `before`; 0: it has none.  It may take locks.
void repair_forks_with(void (*repair)(uint32_t before) noexcept) noexcept;
// The C library calls this in a child if it knows of the fork; needed on systems that cannot empty the page.
void process_was_forked() noexcept;

// True only as long as the process has never had a second thread, and the C library says so.
bool has_one_thread() noexcept;

// For users with a repair of their own, in the child: gives the thread a new id; returns the one that its locks name.
uint32_t rename_thread() noexcept;

// A fork by another thread cuts this thread's stores off at some instruction (docs/design.md, Fork).  If anything
// stored after this call is in the child, all that was stored before it is.
inline void keep_order() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }

}  // namespace hm

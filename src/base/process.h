// Which process this is, and which of its threads.  The child of a fork has the memory of all of its parent's threads and
// one of them: what the others were changing must be repaired before the child takes its first lock, whether the C library
// tells of the fork or not (_Fork, a bare clone).  So the number of the process lies in a page that the system empties in
// every child, and a thread looks at it whenever it takes a lock.
#pragma once
#include <atomic>

#include "base/sizes.h"

namespace hm {

struct KnownProcess {
  std::atomic<uint32_t> number;  // kNew: nobody has repaired it; the same number for a thread and a child of its vfork
  uint32_t id;                   // 0: not known yet
};
struct ThreadName {
  uint32_t id;       // of the system's
  uint32_t process;  // its number when we asked for the id
};
inline constexpr uint32_t kNewProcess = 0, kProcessInRepair = 1, kFirstProcess = 2, kNoProcess = UINT32_MAX;

extern constinit KnownProcess* known_process;
extern constinit thread_local ThreadName my_name;

uint32_t id_of_process() noexcept;  // the system's; a child of vfork has its own
HM_COLD uint32_t ask_thread_id() noexcept;
// The calling thread's, not zero.  Relaxed: the number changes only in a child, and whoever finds it changed asks again.
inline uint32_t my_thread_id() noexcept {
  bool known = my_name.process == known_process->number.load(std::memory_order_relaxed);
  return HM_LIKELY(known) ? my_name.id : ask_thread_id();
}

// At load: in each child of a fork repair(before) runs once, before any thread of it has a lock.  The locks of the
// thread that runs it name `before`; 0: it has none.  It may take locks.
void repair_forks_with(void (*repair)(uint32_t before) noexcept) noexcept;
// What the C library calls in a child, where it knows of the fork: systems are there that do not empty the page.
void process_was_forked() noexcept;

// For a repair of one's own, in the child: the thread has a new id.  Returns the one that its locks still name.
uint32_t rename_thread() noexcept;

// What a thread stores is cut off at some instruction where another forks (docs/design.md, Fork).  What stands before
// this is then in the child whenever anything is that stands behind it.
inline void keep_order() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }

}  // namespace hm

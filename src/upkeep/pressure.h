// What happens near HMALLOC_LIMIT (pages/memory_limit.h), and how the program learns of it.  Nothing of the program's runs
// here: malloc may have been called with locks of libc's held, or the program's own, and could be called again from there.
// So the program asks (level), or waits for an eventfd of its own, which is written to by a system call.
#pragma once
#include <atomic>

#include "pages/options.h"
#include "threads/thread_heap.h"

namespace hm {

class Pressure {
 public:
  constexpr explicit Pressure(bool (*give_all_back)() noexcept) : give_all_back_(give_all_back) {}
  // At the looks of any heap, and at large requests of a thread that has none (null); it holds no lock then.  Above the
  // soft limit, and each time that a step more is resident, one thread gives back all that is free; the others drain their
  // own heaps at their next look.
  void look(ThreadHeap* heap) noexcept {
    if (options.limit != 0) look_at_limit(heap);
  }
  void on_refusal() noexcept;
  // 0: below the soft limit; 1: above it; 2: and a request was refused since it was exceeded.
  int level() noexcept;
  void notify(int eventfd) noexcept { eventfd_.store(eventfd, std::memory_order_relaxed); }  // negative: nobody
  // The eventfd is the parent's too, which the child must not wake.
  void after_fork_in_child() noexcept { notify(-1); }

 private:
  void look_at_limit(ThreadHeap* heap) noexcept;
  void say() noexcept;
  // Relaxed throughout: each is one word, and a reaction too many or a look too late costs only time.
  bool (*give_all_back_)() noexcept;
  std::atomic<size_t> acted_at_{0};  // bytes; 0: not above the soft limit
  std::atomic<uint32_t> reactions_{0};
  std::atomic<bool> refused_{false};
  std::atomic<int> eventfd_{-1};
};
extern Pressure pressure;

}  // namespace hm

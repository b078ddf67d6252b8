// A thread that gives memory back while the program idles: a program that frees much and then sleeps makes no call in
// which the allocator could do it.  Started when a heap of some size is first seen to shrink, so small programs never
// have it; HMALLOC_BACKGROUND=0 keeps it away.
#pragma once
#include <atomic>
#include <cstdint>

namespace hm {

class Scavenger {
 public:
  // work: a round; whether memory went back.
  constexpr explicit Scavenger(bool (*work)() noexcept) : work_(work) {}
  // From slow paths of any thread, holding no lock: there is memory to look after.
  void wake() noexcept {
    if (awake_.load(std::memory_order_relaxed) == 0) start_or_wake();
  }
  // The thread did not survive the fork.
  void after_fork_in_child() noexcept;

 private:
  void start_or_wake() noexcept;
  void start() noexcept;
  static void* run(void* self) noexcept;
  void rounds() noexcept;
  // Relaxed throughout: a lost wake-up is made good by the next one, and the futex re-reads the word.
  bool (*work_)() noexcept;
  std::atomic<uint32_t> awake_{0};
  std::atomic<bool> started_{false};
};
extern Scavenger scavenger;

}  // namespace hm

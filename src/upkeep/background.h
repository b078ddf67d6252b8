// An optional thread that gives memory back while the program idles: HMALLOC_BACKGROUND=1 starts it when the library is
// loaded, hm_background_start() when called.  It is never started from inside malloc or free.
#pragma once
#include <atomic>
#include <cstdint>

namespace hm {

class Background {
 public:
  // work: does one round and returns whether memory went back, or will in a later one.
  constexpr explicit Background(bool (*work)() noexcept) : work_(work) {}
  // Returns 0, also if the thread already runs, or the error number of pthread_create.
  int start() noexcept;
  // For any thread that holds no lock: there may be memory to reclaim.  One load if the thread is awake.
  void wake() noexcept {
    if (asleep_.load(std::memory_order_relaxed) != 0) wake_up();
  }
  // The thread did not survive the fork.
  void after_fork_in_child() noexcept;

 private:
  void wake_up() noexcept;
  static void* run(void* self) noexcept;
  void rounds() noexcept;
  // Relaxed throughout: whoever makes calls wakes it at every look, and the futex re-reads the word.
  bool (*work_)() noexcept;
  std::atomic<uint32_t> asleep_{0};
  std::atomic<bool> started_{false};
};
extern Background background;

}  // namespace hm

// A thread that gives memory back while the program idles; only for who asks for it: HMALLOC_BACKGROUND=1 starts it when
// the library is loaded, hm_background_start() when it is called.  Never from inside malloc or free.
#pragma once
#include <atomic>
#include <cstdint>

namespace hm {

class Background {
 public:
  // work: a round; whether memory went back.
  constexpr explicit Background(bool (*work)() noexcept) : work_(work) {}
  // 0, also if it runs already; otherwise an error number: what pthread_create said.
  int start() noexcept;
  // Any thread, holding no lock: there may be memory to look after.  One load if nobody sleeps.
  void wake() noexcept {
    if (asleep_.load(std::memory_order_relaxed) != 0) wake_up();
  }
  // The thread did not survive the fork.
  void after_fork_in_child() noexcept;

 private:
  void wake_up() noexcept;
  static void* run(void* self) noexcept;
  void rounds() noexcept;
  // Relaxed throughout: a lost wake-up is made good by the next one, and the futex re-reads the word.
  bool (*work_)() noexcept;
  std::atomic<uint32_t> asleep_{0};
  std::atomic<bool> started_{false};
};
extern Background background;

}  // namespace hm

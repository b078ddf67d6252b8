// An optional thread that gives memory back while the program idles: HMALLOC_BACKGROUND=1 starts it when the library is
// loaded, hm_background_start() when called.  It is never started from inside malloc or free.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hm {

class Background {
 public:
  // work: does one round and returns whether memory went back, or will in a later one.
  constexpr explicit Background(bool (*work)() noexcept) : work_(work) {}
  // Returns 0, also if the thread already runs, or the error number of pthread_create.
  int start() noexcept;
  // At load.  It is called at the looks of any heap; or by the thread alone, at least every nap_ms, while there is one, so
  // that the program waits for nothing that it does.  At most two watch.
  void watch(void (*watcher)() noexcept, size_t nap_ms) noexcept;
  // At those looks, and those of threads without a heap: there may be memory to reclaim.  Two loads if the thread is awake and
  // nobody watches.
  void on_look() noexcept {
    if (asleep_.load(std::memory_order_relaxed) != 0) wake_up();
    if (watchers_[0] != nullptr && !started_.load(std::memory_order_relaxed)) call_watchers();
  }
  // The thread did not survive the fork.
  void after_fork_in_child() noexcept;

 private:
  void call_watchers() noexcept;
  void wake_up() noexcept;
  static void* run(void* self) noexcept;
  void rounds() noexcept;
  void sleep(size_t ms) noexcept;
  // Relaxed throughout: whoever makes calls wakes it at every look, and the futex re-reads the word.
  bool (*work_)() noexcept;
  void (*watchers_[2])() noexcept = {};
  size_t nap_ms_ = SIZE_MAX;
  std::atomic<uint32_t> asleep_{0};
  std::atomic<bool> started_{false};
};
extern Background background;

}  // namespace hm

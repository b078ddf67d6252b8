// What is written while the program runs, too: who writes, and who asks for it.
#pragma once
#include <atomic>

#include "base/lock.h"
#include "introspect/output_file.h"

namespace hm {

// One thread writes at a time, of one process: a child of vfork() shares the memory but is another.
class OneWriter {
 public:
  // At the end of the process, after which nothing more is written.
  template <class Write>
  void at_the_end(Write write) noexcept {
    LockGuard guard(lock_);
    write();
    ended_ = true;
  }
  // Does nothing while another thread writes.
  template <class Write>
  void while_running(Write write) noexcept {
    if (!is_the_process()) return;
    TryLockGuard guard(lock_);
    if (guard.holds() && !ended_) write();
  }
  // Whether this is the process that has asked first.
  bool is_the_process() noexcept {
    uint32_t me = id_of_process(), none = 0;
    return process_.compare_exchange_strong(none, me, std::memory_order_relaxed) || none == me;
  }
  // In the child of a fork: what the parent has written is none of its.
  void after_fork_in_child(uint32_t before) noexcept {
    repair_after_fork(lock_, before, [] {});
    ended_ = false;
    process_.store(0, std::memory_order_relaxed);
  }

 private:
  Lock lock_;
  bool ended_ = false;                // under it
  std::atomic<uint32_t> process_{0};  // relaxed: it is a number alone
};

inline constexpr size_t kLongestNap = 1000;  // ms, of the background thread while somebody may ask

// A file whose appearance asks for another, and which goes when that is there.
class Trigger {
 public:
  constexpr Trigger(const char* option, const char* name) : option_(option), name_(name) {}
  bool is_asked_for() const noexcept { return name_[0] != '\0'; }
  bool is_due(uint64_t now_ms) const noexcept {
    return is_asked_for() && now_ms >= last_look_ms_.load(std::memory_order_relaxed) + kLookEveryMs;
  }
  // Under a lock.  write() says whether it could, and if not has told of it.
  template <class Write>
  void look(uint64_t now_ms, Write write) noexcept {
    last_look_ms_.store(now_ms, std::memory_order_relaxed);
    if (stays_ || !output_exists(name_)) return;
    stays_ = !write();
    if (stays_ || remove_output(name_)) return;
    stays_ = true;  // each look would write one
    complain_of_output(option_, name_);
  }

 private:
  static constexpr uint64_t kLookEveryMs = 100;
  const char *option_, *name_;
  bool stays_ = false;                     // and one line has said so
  std::atomic<uint64_t> last_look_ms_{0};  // relaxed: a hint
};

}  // namespace hm

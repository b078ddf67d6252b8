// What the tests of all baselines share.  Each test runs in a process of its own.
#pragma once
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/lock.h"
#include HM_BASELINE_HEADER

namespace contract {

using namespace hm;
namespace baseline = hm::HM_BASELINE;

// HMalloc as published keeps no account of its live blocks, and in a child the heaps of threads that are gone stay as
// they were.
inline constexpr bool kPaper = std::string_view(HM_LIBRARY_NAME) == "hmalloc_paper";
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kThreadsInChild = false;  // their run-times do not survive it
#else
inline constexpr bool kThreadsInChild = true;
#endif

inline char* get(size_t size) { return static_cast<char*>(baseline::allocate(size)); }
inline void give(void* block) { baseline::deallocate(block, "free"); }
inline size_t usable(const void* block) { return baseline::usable_size(block, "test"); }
inline bool holds_only(const char* block, size_t size, char byte) {
  return size == 0 || (block[0] == byte && memcmp(block, block + 1, size - 1) == 0);
}
inline std::vector<void*> get_many(size_t count, size_t size) {
  std::vector<void*> blocks(count);
  for (void*& block : blocks) block = get(size);
  return blocks;
}
inline void give_all(const std::vector<void*>& blocks) {
  for (void* block : blocks) give(block);
}
// The same without the process's own malloc, which a sanitizer does not hold still around a fork.
inline void churn(size_t count, size_t size) {
  std::array<char*, 500> blocks;
  for (size_t i = 0; i < count; ++i) blocks[i] = get(size);
  for (size_t i = 0; i < count; ++i) give(blocks[i]);
}
inline void on_thread(const std::function<void()>& body) { std::thread(body).join(); }

// What it counts, as members of a JSON object.
inline std::string counters() {
  testing::internal::CaptureStderr();
  {
    FdWriter text(STDERR_FILENO);
    baseline::write_counters(text);
  }
  return testing::internal::GetCapturedStderr();
}
inline uint64_t counter(const std::string& name) {
  std::string all = counters(), key = ",\"" + name + "\":";
  size_t at = all.find(key);
  EXPECT_NE(at, std::string::npos) << name;
  return at == std::string::npos ? 0 : std::stoull(all.substr(at + key.size()));
}
inline void expect_nothing_left() {
  EXPECT_TRUE(baseline::is_valid());
  EXPECT_EQ(kPaper ? 0u : baseline::usage().allocated, 0u);
}

// ---- Forks, with what the library does around them. ----

inline int status_of(pid_t child) {
  int status = -1;
  return waitpid(child, &status, 0) == child ? status : -1;
}
inline int status_of_child(const std::function<bool()>& body) {
  baseline::before_fork();
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    baseline::after_fork_in_child();
    _exit(body() ? 0 : 1);
  }
  baseline::after_fork_in_parent();
  return status_of(child);
}

// As in a signal handler that interrupted a malloc: the lock is held by this very thread, in the child too.
inline void expect_fork_within(Lock& lock, const std::function<void()>& work) {
  LockGuard interrupted(lock);
  EXPECT_EQ(status_of_child([&] {
              work();
              return !lock.lock();
            }),
            0);
  EXPECT_FALSE(lock.lock()) << "still held";
}

// True if the call ends only once the lock is free.
inline bool waits_for(Lock& lock, const std::function<void()>& call) {
  std::atomic<bool> ended{false};
  std::thread caller;
  bool early;
  {
    LockGuard guard(lock);
    caller = std::thread([&] {
      call();
      ended = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    early = ended;
  }
  caller.join();
  return !early;
}

}  // namespace contract

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

inline int status_of_child(const std::function<bool()>& body) {
  baseline::before_fork();
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    baseline::after_fork_in_child();
    _exit(body() ? 0 : 1);
  }
  baseline::after_fork_in_parent();
  int status = -1;
  return waitpid(child, &status, 0) == child ? status : -1;
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

// ---- Blocks that wander through a table: who frees is seldom who allocated, and each is one holder's at a time. ----

struct Held {
  size_t size;
  char mark;
  void check_and_free() {
    auto* bytes = reinterpret_cast<char*>(this);
    EXPECT_TRUE(holds_only(bytes + sizeof(Held), size - sizeof(Held), mark));
    memset(static_cast<void*>(this), ~mark, size < 256 ? size : 256);  // who still holds it will see
    give(this);
  }
};
inline std::array<std::atomic<Held*>, 2000> table{};

inline void wander(uint64_t seed, bool small_only) {
  uint64_t random = seed * 0x9E3779B97F4A7C15 + 1;
  for (size_t i = 0; i < 20'000 && !testing::Test::HasFailure(); ++i) {
    random = random * 6364136223846793005 + 1442695040888963407;
    uint64_t dice = random >> 33;
    bool other = dice % 16 == 0 && !small_only;
    size_t size = 16 + (other && dice % 128 == 0 ? dice / 128 % 200'000 : other ? dice / 128 % 20'000 : dice / 16 % 300);
    void* block = other && dice % 64 == 0 ? baseline::allocate_aligned(64 << dice / 64 % 5, size) : baseline::allocate(size);
    auto* held = static_cast<Held*>(memset(block, static_cast<char>(dice >> 8), size));
    *held = {size, static_cast<char>(dice >> 8)};
    bool drop = i / 2000 % 2 == 1 && dice % 2 == 0;  // at times the table empties
    Held* old = table[dice / 7 % table.size()].exchange(drop ? nullptr : held);
    if (drop) held->check_and_free();
    if (old != nullptr) old->check_and_free();
  }
}

inline void let_blocks_wander(bool small_only = false) {
  std::vector<std::thread> threads;
  for (uint64_t t = 1; t <= 4; ++t) threads.emplace_back(wander, t, small_only);
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(baseline::is_valid());
  for (auto& place : table)
    if (Held* held = place.exchange(nullptr)) held->check_and_free();
  expect_nothing_left();
}

}  // namespace contract

#include "baselines/one_lock/one_lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/address_map.h"
#include "base/lock.h"

using namespace hm;
using namespace hm::one_lock;

namespace {

char* get(size_t size) { return static_cast<char*>(allocate(size)); }
void give(void* block) { deallocate(block, "free"); }
size_t usable(const void* block) { return usable_size(block, "test"); }

uint64_t calls() {
  testing::internal::CaptureStderr();
  {
    FdWriter text(STDERR_FILENO);
    write_counters(text);
  }
  std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(said.substr(0, 9), ",\"calls\":");
  return std::stoull(said.substr(9));
}

// True if the call ends only once the lock is free.
bool waits_for_the_lock(const std::function<void()>& call) {
  std::atomic<bool> ended{false};
  std::thread caller;
  bool early;
  {
    LockGuard guard(the_lock());
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

}  // namespace

TEST(OneLock, ClassesArePowersOfTwo) {
  for (size_t size = 1; size <= 32 * kKiB; size += size < 40 ? 1 : size / 9) {
    char* block = get(size);
    EXPECT_EQ(usable(block), std::bit_ceil(size < 16 ? 16 : size)) << size;
    EXPECT_EQ(address_of(block) % usable(block), 0u) << "aligned to its size";
  }
  EXPECT_EQ(AddressMap::kind(address_of(get(32 * kKiB))), ChunkKind::kRegions);
  EXPECT_EQ(AddressMap::kind(address_of(get(32 * kKiB + 1))), ChunkKind::kRuns);
  EXPECT_TRUE(is_valid());
}

TEST(OneLock, EveryAlignmentWithEverySize) {
  for (size_t alignment = 32; alignment <= 4 * kMiB; alignment *= 2)
    for (size_t size : {size_t{1}, size_t{100}, size_t{30000}, size_t{50000}, 2 * kMiB}) {
      void* block = allocate_aligned(alignment, size);
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(address_of(block) % alignment, 0u);
      EXPECT_GE(usable(block), size);
      memset(block, 1, usable(block));
      give(block);
    }
  EXPECT_EQ(usage().allocated, 0u);
  EXPECT_TRUE(is_valid());
}

TEST(OneLock, AFreedBlockIsTheNextOfItsClass) {
  char* block = get(100);
  char* other = get(100);
  EXPECT_EQ(other, block + 128) << "upwards through a fresh region";
  give(block);
  EXPECT_NE(get(200), block);
  EXPECT_EQ(get(128), block);
}

TEST(OneLock, NoBlockIsHandedOutTwiceAndNoTwoOverlap) {
  std::mt19937 random(1);
  std::vector<std::pair<char*, size_t>> live;
  for (int i = 0; i < 30000; ++i) {
    if (random() % 3 == 0 && !live.empty()) {
      std::swap(live[random() % live.size()], live.back());
      auto [block, size] = live.back();
      ASSERT_EQ(block[0], static_cast<char>(size));
      ASSERT_EQ(block[size - 1], static_cast<char>(size));
      give(block);
      live.pop_back();
    } else {
      size_t size = 1 + random() % (i % 40 == 0 ? 100000 : 800);
      char* block = get(size);
      memset(block, static_cast<char>(size), size);
      live.emplace_back(block, size);
    }
  }
  EXPECT_TRUE(is_valid());
  std::set<char*> starts;
  for (auto& [block, size] : live) starts.insert(block);
  EXPECT_EQ(starts.size(), live.size());
}

TEST(OneLock, TheAccountIsExact) {
  char* small = get(100);
  char* large = get(100 * kKiB);
  EXPECT_EQ(usage().allocated, 128 + 100 * kKiB);
  EXPECT_EQ(usage().mapped, 64 * kKiB + kChunk);
  give(small);
  give(large);
  EXPECT_EQ(usage().allocated, 0u);
}

TEST(OneLock, EveryCallTakesTheLock) {
  uint64_t before = calls();
  give(get(10));
  give(get(100000));
  EXPECT_EQ(calls(), before + 4);
  char* small = get(10);
  char* large = get(100000);
  char* huge = get(3 * kMiB);
  EXPECT_TRUE(waits_for_the_lock([] { get(10); }));
  EXPECT_TRUE(waits_for_the_lock([] { get(100000); }));
  EXPECT_TRUE(waits_for_the_lock([] { allocate_aligned(64, 10); }));
  EXPECT_TRUE(waits_for_the_lock([=] { give(small); }));
  EXPECT_TRUE(waits_for_the_lock([=] { give(large); }));
  EXPECT_TRUE(waits_for_the_lock([=] { resize(huge, 5 * kMiB); }));
  EXPECT_TRUE(waits_for_the_lock([] { usage(); }));
}

TEST(OneLock, ThreadsShareTheHeap) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      std::mt19937 random(t);
      std::vector<char*> blocks(50);
      for (int i = 0; i < 3000; ++i) {
        char*& block = blocks[random() % blocks.size()];
        if (block != nullptr) {
          ASSERT_EQ(block[0], static_cast<char>(t));
          give(block);
        }
        block = get(1 + random() % 3000);
        block[0] = static_cast<char>(t);
      }
      for (char* block : blocks)
        if (block != nullptr) give(block);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(usage().allocated, 0u);
  EXPECT_TRUE(is_valid());
}

TEST(OneLock, TheChildOfAForkGoesOn) {
  if (kThreadSanitizer) GTEST_SKIP() << "its run-time does not survive a fork beside threads";
  std::atomic<bool> done{false};
  std::thread busy([&] {
    while (!done) give(get(100000)), give(get(10));
  });
  for (int i = 0; i < 50; ++i) {
    before_fork();
    pid_t child = fork();
    if (child == 0) {
      alarm(10);
      after_fork_in_child();
      give(get(10));
      give(get(100000));
      std::thread([] { give(get(3 * kMiB)); }).join();
      _exit(0);
    }
    after_fork_in_parent();
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  done = true;
  busy.join();
}

// As in a signal handler that interrupted a malloc: the lock is held by this very thread, in the child too.
TEST(OneLock, AForkWithinTheLockWorks) {
  LockGuard interrupted(the_lock());
  before_fork();
  pid_t child = fork();
  if (child == 0) {
    alarm(10);
    after_fork_in_child();
    give(get(10));
    give(get(100000));
    _exit(the_lock().lock() ? 1 : 0);
  }
  after_fork_in_parent();
  EXPECT_FALSE(the_lock().lock()) << "still held";
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(OneLock, ExaminesItself) {
  char* one = get(100);
  char* two = get(100);
  give(one);
  give(two);
  EXPECT_TRUE(is_valid());
  give(one);  // twice, but not in a row: nobody sees it
  EXPECT_FALSE(is_valid());
}

TEST(OneLock, FindsALostBlock) {
  get(100);
  EXPECT_TRUE(is_valid());
  char* last = get(100);
  give(last);
  memset(last, 0, 8);  // cuts the list
  EXPECT_FALSE(is_valid());
}

TEST(OneLockDeathTest, WhatIsNoBlockEndsTheProgram) {
  int local = 0;
  char* block = get(16);
  auto* region = reinterpret_cast<char*>(align_down(address_of(block), 64 * kKiB));
  EXPECT_DEATH(give(&local), "^one_lock: free\\(0x[0-9a-f]+\\): not a block of one_lock");
  EXPECT_DEATH(give(reinterpret_cast<void*>(0x4141414141414140)), "not a block of one_lock");
  EXPECT_DEATH(give(region), "not a block of one_lock") << "the region's header";
  EXPECT_DEATH(give(region + 64 * kKiB), "not a block of one_lock") << "never cut";
  EXPECT_DEATH(give(region + 64 * kKiB + 16), "not a block of one_lock") << "never cut";
  EXPECT_DEATH(give(block + 8), "points into a block");
  EXPECT_DEATH(give(get(100) + 64), "points into a block");
  EXPECT_DEATH(usable(get(100) + 16), "points into a block");
  EXPECT_DEATH(give(get(100000) + 4096), "not a block");
}

TEST(OneLockDeathTest, ADoubleFreeInARowEndsTheProgram) {
  for (size_t size : {10, 1000, 100000, 3000000}) {
    char* block = get(size);
    give(block);
    EXPECT_DEATH(give(block), "freed already|not a block");
  }
}

#include "baselines/common/fork_locks.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

using namespace hm;

namespace {

// Whether another thread gets the lock within a moment.
bool is_free(Lock& lock) {
  bool mine = lock.lock();
  if (mine) lock.unlock();
  std::atomic<bool> got{false};
  std::thread other([&] {
    LockGuard guard(lock);
    got = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  bool free = got;
  if (!free) lock.unlock();  // held by this thread: let the other end
  other.join();
  return free;
}

}  // namespace

TEST(ForkLocks, HoldsThemUntilTheyAreReleased) {
  for (int round = 0; round < 2; ++round) {
    Lock first, second;
    ForkLocks<2> held;
    held.take(first);
    held.take(second);
    EXPECT_FALSE(first.lock()) << "this thread holds it";
    EXPECT_FALSE(second.lock());
    held.release();
    EXPECT_TRUE(is_free(first));
    EXPECT_TRUE(is_free(second));
    held.take(first);
    EXPECT_FALSE(is_free(first)) << "it can be used again";
  }
}

TEST(ForkLocks, LeavesALockAloneThatThisThreadHoldsAnyway) {
  Lock interrupted, other;
  ASSERT_TRUE(interrupted.lock());
  ForkLocks<2> held;
  held.take(interrupted);
  held.take(other);
  held.release();
  EXPECT_TRUE(is_free(other));
  EXPECT_FALSE(is_free(interrupted)) << "its holder was interrupted, and will unlock it";
}

// glibc lets the handlers of two forks run side by side.
TEST(ForkLocks, TwoThreadsMayForkAtOnce) {
  constexpr int kRounds = 30000;
  Lock first, second, third;
  ForkLocks<3> held;
  long forks = 0;  // plain: only who holds the locks may count
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        held.take(first);
        held.take(second);
        held.take(third);
        ++forks;
        held.release();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(forks, 3L * kRounds);
  for (Lock* lock : {&first, &second, &third}) EXPECT_TRUE(is_free(*lock));
}

TEST(ForkLocks, TheChildHasThemFreeWhoeverHeldThem) {
  if (kThreadSanitizer) GTEST_SKIP() << "its run-time does not survive a fork beside threads";
  std::array<Lock, 3> locks;
  ForkLocks<3> held;
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      for (size_t i = 0; !done; ++i) LockGuard guard(locks[i % 3]);
    });
  for (int i = 0; i < 100; ++i) {
    for (Lock& lock : locks) held.take(lock);
    pid_t child = fork();
    if (child == 0) {
      alarm(10);
      uint32_t before = rename_thread();
      for (Lock& lock : locks) lock.adopt_after_fork(before);
      held.release();
      for (Lock& lock : locks)
        if (!lock.lock()) _exit(1);
      _exit(0);
    }
    held.release();
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(ForkLocksDeathTest, HasRoomForSoMany) {
  Lock first, second;
  ForkLocks<1> held;
  held.take(first);
  EXPECT_DEATH(held.take(second), "");
}

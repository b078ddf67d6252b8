#include "baselines/common/fork_locks.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "contract_support.h"

using namespace hm;

TEST(ForkLocks, HoldsThemUntilTheyAreReleased) {
  Lock first, second;
  ForkLocks<2> held;
  for (int round = 0; round < 2; ++round) {
    held.take(first);
    held.take(second);
    EXPECT_FALSE(first.lock()) << "this thread holds it";
    EXPECT_FALSE(second.lock());
    held.release();
    for (Lock* lock : {&first, &second}) contract::on_thread([=] { LockGuard waits(*lock); });
  }
}

TEST(ForkLocks, LeavesALockAloneThatThisThreadHoldsAnyway) {
  Lock interrupted, other;
  ASSERT_TRUE(interrupted.lock());
  ForkLocks<2> held;
  held.take(interrupted);
  held.take(other);
  held.release();
  EXPECT_FALSE(interrupted.lock()) << "its holder was interrupted, and will unlock it";
  EXPECT_TRUE(other.lock());
}

// glibc lets the handlers of two forks run side by side.
TEST(ForkLocks, TwoThreadsMayForkAtOnce) {
  constexpr int kRounds = 30000;
  Lock first, second;
  ForkLocks<2> held;
  long forks = 0;  // plain: only who holds the locks may count
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        held.take(first);
        held.take(second);
        ++forks;
        held.release();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(forks, 3L * kRounds);
  EXPECT_TRUE(first.lock() && second.lock());
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
  for (int i = 0; i < 100 && !HasFailure(); ++i) {
    for (Lock& lock : locks) held.take(lock);
    pid_t child = fork();
    if (child == 0) {
      alarm(60);
      uint32_t before = rename_thread();
      for (Lock& lock : locks) lock.adopt_after_fork(before);
      held.release();
      for (Lock& lock : locks)
        if (!lock.lock()) _exit(1);
      _exit(0);
    }
    held.release();
    EXPECT_EQ(contract::status_of(child), 0);
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

#include "base/lock.h"

#include <cerrno>
#include <chrono>

#include "support.h"

using namespace hm;

// A signal handler that interrupted the holder may fork: the lock tells that it is held by this very thread.
TEST(Lock, ASecondLockByTheHolderIsRefused) {
  Lock lock;
  EXPECT_TRUE(lock.lock());
  EXPECT_FALSE(lock.lock());
  lock.unlock();
  EXPECT_TRUE(lock.lock()) << "free again";
  lock.unlock();
}

TEST(Lock, AnInnerGuardLeavesItHeld) {
  Lock lock;
  bool entered = false;
  std::thread other;
  {
    LockGuard outer(lock);
    { LockGuard inner(lock); }
    EXPECT_FALSE(lock.lock()) << "the inner guard must not unlock what it did not lock";
    other = std::thread([&] {
      LockGuard guard(lock);
      entered = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_FALSE(entered);  // under the lock: no race
  }
  other.join();
  EXPECT_TRUE(entered);
}

TEST(Lock, ExcludesAndOrders) {
  constexpr int kThreads = 4, kRounds = 20000;
  Lock lock;
  long sum = 0;  // plain: ThreadSanitizer sees whether the lock orders the accesses
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        LockGuard guard(lock);
        ++sum;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum, long{kThreads} * kRounds);
}

TEST(Lock, WaitsWithoutTouchingErrno) {
  Lock lock;
  ASSERT_TRUE(lock.lock());
  std::thread waiter([&] {
    errno = 4242;
    EXPECT_TRUE(lock.lock());
    EXPECT_EQ(errno, 4242);
    lock.unlock();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // long enough for the waiter to sleep in the kernel
  lock.unlock();
  waiter.join();
}

namespace {

// Held by a thread that is not there any more.
void leave_locked(Lock& lock) {
  std::thread([&] { EXPECT_TRUE(lock.lock()); }).join();
}
bool is_repaired(Lock& lock, uint32_t before) {
  bool repaired = false;
  repair_after_fork(lock, before, [&] { repaired = true; });
  return repaired;
}

}  // namespace

TEST(Lock, WhatAThreadThatIsGoneHeldIsRepairedAndFree) {
  Lock lock;
  leave_locked(lock);
  EXPECT_TRUE(is_repaired(lock, my_thread_id()));
  EXPECT_TRUE(lock.lock());
  lock.unlock();
  leave_locked(lock);
  EXPECT_TRUE(is_repaired(lock, 0)) << "this thread has no lock at all";
  EXPECT_FALSE(is_repaired(lock, 0)) << "it is free";
}

// The interrupted code goes on with what it was changing.
TEST(Lock, WhatThisThreadHoldsStaysHeldUnderItsNewId) {
  Lock lock;
  EXPECT_TRUE(lock.lock());
  uint32_t before = rename_thread();
  EXPECT_FALSE(is_repaired(lock, before));
  EXPECT_FALSE(lock.lock()) << "held by this thread";
  lock.unlock();
  EXPECT_FALSE(is_repaired(lock, before)) << "free";
}

#include "base/lock.h"

#include <cerrno>
#include <chrono>

#include "support.h"

using namespace hm;
using namespace hm::test;

namespace {

void wait_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// Held by a thread that is not there any more.
void leave_locked(Lock& lock) {
  on_thread([&] { EXPECT_TRUE(lock.lock()); });
}
bool is_repaired(Lock& lock, uint32_t before) {
  bool repaired = false;
  repair_after_fork(lock, before, [&] { repaired = true; });
  return repaired;
}

}  // namespace

// A signal handler that interrupted the holder may fork: the lock tells that it is held by this very thread.
TEST(Lock, ASecondLockByTheHolderIsRefused) {
  Lock lock;
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(lock.lock());
    EXPECT_FALSE(lock.lock());
    lock.unlock();
  }
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
    wait_ms(5);
    EXPECT_FALSE(entered);  // under the lock: no race
  }
  other.join();
  EXPECT_TRUE(entered);
}

TEST(Lock, ExcludesAndOrders) {
  constexpr int kRounds = 20000;
  Lock lock;
  int sum = 0;  // plain: ThreadSanitizer sees whether the lock orders the accesses
  on_threads(4, [&](unsigned) {
    for (int i = 0; i < kRounds; ++i) {
      LockGuard guard(lock);
      ++sum;
    }
  });
  EXPECT_EQ(sum, 4 * kRounds);
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
  wait_ms(20);  // long enough for the waiter to sleep in the kernel
  lock.unlock();
  waiter.join();
}

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

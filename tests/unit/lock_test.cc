#include "base/lock.h"

#include <cerrno>

#include "support.h"

using namespace hm;

TEST(Lock, KnowsItsHolder) {
  Lock lock;
  EXPECT_FALSE(lock.held_by_me());
  EXPECT_TRUE(lock.lock());
  EXPECT_TRUE(lock.held_by_me());
  test::on_thread([&] { EXPECT_FALSE(lock.held_by_me()); });
  lock.unlock();
  EXPECT_FALSE(lock.held_by_me());
}

TEST(Lock, ASecondLockByTheHolderIsRefusedAndLeavesItHeld) {
  Lock lock;
  LockGuard outer(lock);
  EXPECT_FALSE(lock.lock());
  { LockGuard inner(lock); }
  EXPECT_TRUE(lock.held_by_me()) << "the inner guard must not unlock what it did not lock";
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

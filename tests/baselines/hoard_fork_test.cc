// fork() in a process of several threads.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <semaphore>

#include "hoard_support.h"

using namespace hoard_test;

namespace {

int status_of_child(const std::function<bool()>& in_child) {
  before_fork();
  pid_t child = fork();
  if (child == 0) {
    alarm(10);
    after_fork_in_child();
    _exit(in_child() ? 0 : 1);
  }
  after_fork_in_parent();
  int status = -1;
  return waitpid(child, &status, 0) == child ? status : -1;
}

}  // namespace

// A thread that has a superblock's lock and waits for its owner's is not in the child, but the lock is.
TEST(HoardFork, ASuperblocksLockIsFreeInTheChild) {
  void* block = allocate(100);
  std::binary_semaphore held{0}, forked{0};
  std::thread other([&] {
    LockGuard guard(superblock(block).lock);
    held.release();
    forked.acquire();
  });
  held.acquire();
  EXPECT_EQ(status_of_child([&] {
    deallocate(block, "test");
    return is_valid();
  }), 0);
  forked.release();
  other.join();
  deallocate(block, "test");
}

// A signal handler that interrupted free() forks: the lock is this thread's still, in the child too.
TEST(HoardFork, AnInterruptedFreeKeepsItsLock) {
  void* block = allocate(100);
  Lock& lock = superblock(block).lock;
  ASSERT_TRUE(lock.lock());
  EXPECT_EQ(status_of_child([&] {
    bool still_mine = !lock.lock();
    lock.unlock();
    return still_mine && lock.lock();
  }), 0);
  lock.unlock();
}

// Nobody is within a heap at the moment of the fork.
TEST(HoardFork, WaitsForAHeapsLock) {
  start_with({{"HOARD_HEAPS", "2"}});
  std::binary_semaphore held{0}, forked{0};
  bool left = false;
  std::thread other([&] {
    {
      LockGuard guard(heaps[2].lock);
      held.release();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      left = true;
    }
    forked.acquire();  // until then it lives: ThreadSanitizer would miss its join in the child
  });
  held.acquire();
  EXPECT_EQ(status_of_child([&] { return left && is_valid(); }), 0);
  forked.release();
  other.join();
}

TEST(HoardFork, WhileOthersAllocate) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      while (!stop) {
        auto blocks = allocate_many(500, 64);
        free_all(blocks);
      }
    });
  for (int i = 0; i < 30 && !HasFailure(); ++i)
    EXPECT_EQ(status_of_child([] {
      auto blocks = allocate_many(2000, 64);
      free_all(blocks);
      return is_valid();
    }), 0);
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(is_valid());
}

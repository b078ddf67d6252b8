// fork() in a process of several threads.
#include <semaphore>

#include "contract_support.h"
#include "hoard_support.h"

using namespace hoard_test;

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
  EXPECT_EQ(contract::status_of_child([&] {
              deallocate(block, "test");
              return is_valid();
            }),
            0);
  forked.release();
  other.join();
  deallocate(block, "test");
}

// A signal handler that interrupted free() forks.
TEST(HoardFork, AnInterruptedFreeKeepsItsLock) {
  contract::expect_fork_within(superblock(allocate(100)).lock, [] {});
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
  EXPECT_EQ(contract::status_of_child([&] { return left && is_valid(); }), 0);
  forked.release();
  other.join();
}

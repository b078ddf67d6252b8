// Several threads: owners that change, examinations meanwhile, forks.
#include <future>

#include "hoard_support.h"

using namespace hoard_test;

namespace {

// A thread that holds a lock, and does not end before the fork: ThreadSanitizer would miss its join in the child.
class Holder {
 public:
  explicit Holder(Lock& lock) : lock_(lock) { held_.get_future().wait(); }
  ~Holder() {
    forked_.set_value();
    thread_.join();
  }
  void let_go() { let_go_.set_value(); }

 private:
  Lock& lock_;
  std::promise<void> held_, let_go_, forked_;
  std::thread thread_{[this] {
    {
      LockGuard guard(lock_);
      held_.set_value();
      let_go_.get_future().wait();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    forked_.get_future().wait();
  }};
};

}  // namespace

// A superblock that changes its owner while a thread waits for the owner's lock.
TEST(HoardThreads, AnOwnerIsLookedAtAgain) {
  start_with({{"HOARD_HEAPS", "2"}, {"HOARD_KEEP", "1000"}});
  void* block = nullptr;
  on_heap(1, [&] { block = get(100); });
  Superblock& s = superblock(block);
  std::thread freer;
  {
    LockGuard first(heaps[1].lock);
    freer = std::thread([&] { give(block); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it waits by now
    heaps[1].remove(s);
    heaps[2].insert(s);
  }
  freer.join();
  EXPECT_EQ(heaps[1].u(), 0u);
  EXPECT_EQ(heaps[2].u(), 0u);
  EXPECT_TRUE(hoard::is_valid());
}

// is_valid() takes the locks: it may be asked at any time.
TEST(HoardThreads, ExaminedWhileTheyRun) {
  start_with({{"HOARD_HEAPS", "4"}, {"HOARD_KEEP", "0"}});
  std::atomic<int> left{3};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (size_t i = 0; i < 300; ++i) churn(200, 16 + i);
      --left;
    });
  while (left > 0) EXPECT_TRUE(hoard::is_valid());
  for (std::thread& thread : threads) thread.join();
  expect_nothing_left();
}

// Threads that come and go leave nothing behind: heaps are not theirs.
TEST(HoardThreads, ThreadsLeaveNothing) {
  start_with({{"HOARD_HEAPS", "4"}});
  for (int i = 0; i < 200; ++i) on_thread([] { give_all(get_many(1000, 100)); });
  EXPECT_LE(taken(), bound_of(100, 1000));
}

// A thread that has a superblock's lock and waits for its owner's is not in the child, but the lock is.
TEST(HoardFork, ASuperblocksLockIsFreeInTheChild) {
  void* block = get(100);
  Holder other(superblock(block).lock);
  EXPECT_EQ(status_of_child([&] {
              give(block);
              return hoard::is_valid();
            }),
            0);
  other.let_go();
  give(block);
}

// A signal handler that interrupted free() forks.
TEST(HoardFork, AnInterruptedFreeKeepsItsLock) {
  expect_fork_within(superblock(get(100)).lock, [] {});
}

// Nobody is within a heap at the moment of the fork: it would not be valid.
TEST(HoardFork, WaitsForAHeapsLock) {
  start_with({{"HOARD_HEAPS", "2"}});
  Holder other(heaps[2].lock);
  other.let_go();
  EXPECT_EQ(status_of_child([] { return heaps[2].lock.lock(); }), 0);
}

// Several threads: silent under ThreadSanitizer.
#include "contract_support.h"
#include "hoard_support.h"

using namespace hoard_test;

TEST(HoardThreads, BlocksWander) { contract::let_blocks_wander(); }

// Superblocks change their owners all the time, often while somebody waits for the lock of one.
TEST(HoardThreads, OwnersChangeWhileOthersFree) {
  start_with({{"HOARD_HEAPS", "4"}, {"HOARD_KEEP", "0"}, {"HOARD_EMPTY_FRACTION", "1/10"}});
  contract::let_blocks_wander();
  EXPECT_GT(heaps.traffic.to_global, 100u);
  EXPECT_GT(heaps.traffic.from_global, 100u);
}

// A superblock that changes its owner while a thread waits for the owner's lock.
TEST(HoardThreads, AnOwnerIsLookedAtAgain) {
  start_with({{"HOARD_HEAPS", "2"}, {"HOARD_KEEP", "1000"}});
  void* block = nullptr;
  on_heap(1, [&] { block = allocate(100); });
  Superblock& s = superblock(block);
  std::thread freer;
  {
    LockGuard first(heaps[1].lock);
    freer = std::thread([&] { deallocate(block, "test"); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it waits by now
    heaps[1].remove(s);
    heaps[2].insert(s);
  }
  freer.join();
  EXPECT_EQ(heaps[1].u(), 0u);
  EXPECT_EQ(heaps[2].u(), 0u);
  EXPECT_TRUE(is_valid());
}

// is_valid() takes the locks: it may be asked at any time.
TEST(HoardThreads, ExaminedWhileTheyRun) {
  start_with({});
  std::atomic<bool> stop{false};
  std::thread examiner([&] {
    while (!stop) EXPECT_TRUE(is_valid());
  });
  contract::let_blocks_wander(true);
  stop = true;
  examiner.join();
}

// Threads that come and go leave nothing behind: heaps are not theirs.
TEST(HoardThreads, ThreadsLeaveNothing) {
  start_with({{"HOARD_HEAPS", "4"}});
  for (int i = 0; i < 200; ++i)
    std::thread([] {
      auto blocks = allocate_many(1000, 100);
      free_all(blocks);
    }).join();
  EXPECT_LE(heaps.superblocks.taken(), bound_of(100, 1000));
}

// Several threads: silent under ThreadSanitizer.
#include <atomic>
#include <chrono>
#include <cstring>
#include <random>

#include "hoard_support.h"

using namespace hoard_test;

namespace {

constexpr size_t kThreads = 4, kPlaces = 2000, kRounds = 20000;
std::array<std::atomic<unsigned char*>, kPlaces> places;

// Swaps blocks through a table: who frees is seldom who allocated.  The first byte says how long, the second ends it.
void swap_blocks(unsigned seed) {
  std::mt19937 random(seed);
  for (size_t i = 0; i < kRounds; ++i) {
    size_t size = 16 + random() % 200;
    auto* block = static_cast<unsigned char*>(allocate(size));
    memset(block, static_cast<int>(size), size);
    bool drop = (i / 2000) % 2 == 1 && random() % 2 == 0;  // at times the table empties
    unsigned char* old = places[random() % kPlaces].exchange(drop ? nullptr : block);
    if (drop) deallocate(block, "test");
    if (old == nullptr) continue;
    ASSERT_EQ(old[1], old[0]);
    ASSERT_EQ(old[old[0] - 1], old[0]);
    deallocate(old, "test");
  }
}

void stress() {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) threads.emplace_back(swap_blocks, t + 1);
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(is_valid());
  for (auto& place : places)
    if (unsigned char* block = place.exchange(nullptr)) deallocate(block, "test");
  EXPECT_TRUE(is_valid());
  EXPECT_EQ(usage().allocated, 0u);
}

}  // namespace

TEST(HoardThreads, BlocksWander) { stress(); }

// Superblocks change their owners all the time, often while somebody waits for the lock of one.
TEST(HoardThreads, OwnersChangeWhileOthersFree) {
  start_with({{"HOARD_HEAPS", "4"}, {"HOARD_KEEP", "0"}, {"HOARD_EMPTY_FRACTION", "1/10"}});
  stress();
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
  stress();
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

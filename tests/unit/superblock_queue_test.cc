#include "core/superblock_queue.h"

#include <atomic>

#include "support.h"

using namespace hm;

namespace {
std::vector<Superblock> some(size_t n) { return std::vector<Superblock>(n); }
}  // namespace

TEST(SuperblockQueue, FirstInFirstOut) {
  auto sbs = some(4);
  SuperblockQueue queue;
  EXPECT_EQ(queue.pop(), nullptr);
  for (Superblock& sb : sbs) queue.push(sb);
  EXPECT_EQ(queue.count(), 4u);
  for (Superblock& sb : sbs) EXPECT_EQ(queue.pop(), &sb);
  EXPECT_EQ(queue.pop(), nullptr);
  EXPECT_EQ(queue.count(), 0u);
}

TEST(SuperblockQueue, PushFrontIsPoppedNext) {
  auto sbs = some(3);
  SuperblockQueue queue;
  queue.push_front(sbs[0]);  // into an empty queue: it is also the last
  queue.push(sbs[1]);
  queue.push_front(sbs[2]);
  EXPECT_EQ(queue.pop(), &sbs[2]);
  EXPECT_EQ(queue.pop(), &sbs[0]);
  EXPECT_EQ(queue.pop(), &sbs[1]);
}

TEST(SuperblockQueue, RefillsAfterRunningEmpty) {
  auto sbs = some(2);
  SuperblockQueue queue;
  for (int round = 0; round < 3; ++round) {
    queue.push(sbs[0]);
    queue.push(sbs[1]);
    EXPECT_EQ(queue.pop(), &sbs[0]);
    EXPECT_EQ(queue.pop(), &sbs[1]);
    EXPECT_EQ(queue.pop(), nullptr);
  }
}

TEST(SuperblockQueue, VisitsInOrder) {
  auto sbs = some(3);
  SuperblockQueue queue;
  for (Superblock& sb : sbs) queue.push(sb);
  std::vector<Superblock*> seen;
  queue.for_each([&](Superblock& sb) { seen.push_back(&sb); });
  EXPECT_EQ(seen, (std::vector<Superblock*>{&sbs[0], &sbs[1], &sbs[2]}));
}

// S1: whoever pops is the only holder.  `blocks` counts the visits, unguarded: ThreadSanitizer sees two holders at once.
TEST(SuperblockQueue, OneHolderAtATime) {
  constexpr size_t kThreads = 4;
  constexpr uint32_t kRounds = 20000;
  auto sbs = some(3);
  SuperblockQueue queue;
  for (Superblock& sb : sbs) queue.push(sb);
  std::vector<std::thread> threads;
  std::atomic<uint32_t> visits{0};
  for (size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (uint32_t i = 0; i < kRounds; ++i) {
        Superblock* sb = queue.pop();
        if (sb == nullptr) continue;
        ++sb->blocks;
        visits.fetch_add(1);
        i % 2 == 0 ? queue.push(*sb) : queue.push_front(*sb);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(queue.count(), 3u);
  EXPECT_EQ(sbs[0].blocks + sbs[1].blocks + sbs[2].blocks, visits.load());
}

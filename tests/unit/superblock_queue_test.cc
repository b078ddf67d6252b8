#include "core/superblock_queue.h"

#include <atomic>

#include "support.h"

using namespace hm;

namespace {

struct SuperblockQueues : testing::Test {
  std::vector<Superblock> sbs = std::vector<Superblock>(4);
  SuperblockQueue queue;
  void push_all() {
    for (Superblock& sb : sbs) queue.push(sb);
  }
};

}  // namespace

TEST_F(SuperblockQueues, FirstInFirstOut) {
  EXPECT_EQ(queue.pop(), nullptr);
  for (int round = 0; round < 3; ++round) {
    push_all();
    EXPECT_EQ(queue.count(), 4u);
    std::vector<Superblock*> seen, popped;
    queue.for_each([&](Superblock& sb) { seen.push_back(&sb); });
    while (Superblock* sb = queue.pop()) popped.push_back(sb);
    EXPECT_EQ(popped, (std::vector{&sbs[0], &sbs[1], &sbs[2], &sbs[3]}));
    EXPECT_EQ(seen, popped);
    EXPECT_EQ(queue.count(), 0u);
  }
}

TEST_F(SuperblockQueues, PushFrontIsPoppedNext) {
  queue.push_front(sbs[0]);  // into an empty queue: it is also the last
  queue.push(sbs[1]);
  queue.push_front(sbs[2]);
  for (size_t i : {2, 0, 1}) EXPECT_EQ(queue.pop(), &sbs[i]);
}

// S1: whoever pops is the only holder.  `blocks` counts the visits, unguarded: ThreadSanitizer sees two holders at once.
TEST_F(SuperblockQueues, OneHolderAtATime) {
  push_all();
  std::atomic<uint32_t> visits{0};
  test::on_threads(5, [&](unsigned) {
    for (int i = 0; i < 16000; ++i) {
      Superblock* sb = queue.pop();
      if (sb == nullptr) continue;
      ++sb->blocks;
      visits.fetch_add(1);
      i % 2 == 0 ? queue.push(*sb) : queue.push_front(*sb);
    }
  });
  EXPECT_EQ(queue.count(), 4u);
  EXPECT_EQ(sbs[0].blocks + sbs[1].blocks + sbs[2].blocks + sbs[3].blocks, visits.load());
}

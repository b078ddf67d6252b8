// Section 4.1: A(t) = O(U(t) + P).  In superblocks of one class at most U/((1 - f)*n) + K for each heap.
#include "hoard_support.h"

using namespace hoard_test;

namespace {

constexpr size_t kSize = 200, kLive = 4000;

void hand_over(size_t from, size_t to) {
  std::vector<void*> blocks;
  on_heap(from, [&] { blocks = allocate_many(kLive, kSize); });
  on_heap(to, [&] { free_all(blocks); });
}

size_t taken() { return heaps.superblocks.taken(); }

}  // namespace

TEST(HoardBlowup, ProducerAndConsumer) {
  start_with({{"HOARD_HEAPS", "8"}});
  hand_over(1, 2);
  size_t once = taken();
  for (int round = 0; round < 30; ++round) hand_over(1, 2);
  EXPECT_EQ(taken(), once) << "the producer has back what the consumer freed";
  EXPECT_LE(taken(), bound_of(kSize, kLive));
}

// Section 6: each in turn allocates, the next one frees.  Private heaps with ownership need P times the memory.
TEST(HoardBlowup, RoundRobin) {
  start_with({{"HOARD_HEAPS", "8"}});
  for (size_t turn = 0; turn < 40; ++turn) hand_over(1 + turn % 8, 1 + (turn + 1) % 8);
  EXPECT_LE(taken(), bound_of(kSize, kLive));
  EXPECT_LE(taken(), kLive / blocks_of(kSize) + 1 + 8 * options.keep) << "here f costs nothing";
}

// f = 1 turns the transfers off: what is left is an allocator with private heaps and ownership.
TEST(HoardBlowup, RoundRobinWithoutTransfersNeedsPTimesAsMuch) {
  start_with({{"HOARD_HEAPS", "8"}, {"HOARD_EMPTY_FRACTION", "1"}});
  for (size_t turn = 0; turn < 40; ++turn) hand_over(1 + turn % 8, 1 + (turn + 1) % 8);
  EXPECT_EQ(taken(), 8 * (kLive / blocks_of(kSize) + 1));
}

// The constants are no larger than they must be: K superblocks of every heap can be free at a time.
TEST(HoardBlowup, TheBoundIsMet) {
  start_with({{"HOARD_HEAPS", "8"}});
  for (size_t heap = 1; heap <= 8; ++heap) {
    std::vector<void*> blocks;
    on_heap(heap, [&] { blocks = allocate_many(options.keep * blocks_of(kSize), kSize); });
    free_all(blocks);
  }
  EXPECT_EQ(taken(), 8 * options.keep);
}

// What OwnClassOfTheGlobalHeapComesBeforeRecycling is for.  Each round another class leaves empty superblocks.  Were
// they taken before those of the class in the global heap, which have one object each, every round would bring more
// from the system.
TEST(HoardBlowup, ThinSuperblocksAreFilledBeforeEmptyOnesAreRecycled) {
  start_with({{"HOARD_HEAPS", "1"}});
  size_t n = blocks_of(kSize), most = 0, rounds = 100;
  std::vector<void*> kept;
  for (size_t round = 0; round < rounds; ++round) {
    auto others = allocate_many(options.keep * blocks_of(1000), 1000);
    free_all(others);
    auto blocks = allocate_many(8 * n, kSize);
    most = std::max(most, heaps[1].u() + heaps.global().u());
    for (size_t i = 0; i < blocks.size(); ++i)
      if (i % n == 0) kept.push_back(blocks[i]);
      else deallocate(blocks[i], "test");
  }
  EXPECT_LE(taken(), bound(most, n * 224, 2));
  EXPECT_TRUE(is_valid());
}

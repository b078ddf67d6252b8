// Section 4.1: A(t) = O(U(t) + P).  In superblocks of one class at most U/((1 - f)*n) + K for each heap.
#include <random>
#include <set>

#include "hoard_support.h"

using namespace hoard_test;

namespace {

constexpr size_t kSize = 200, kLive = 4000;

void hand_over(size_t from, size_t to) {
  std::vector<void*> blocks;
  on_heap(from, [&] { blocks = get_many(kLive, kSize); });
  on_heap(to, [&] { give_all(blocks); });
}

}  // namespace

TEST(HoardBlowup, ProducerAndConsumer) {
  start_with({{"HOARD_HEAPS", "8"}});
  hand_over(1, 2);
  size_t once = taken();
  for (int round = 0; round < 30; ++round) hand_over(1, 2);
  EXPECT_EQ(taken(), once) << "the producer has back what the consumer freed";
  EXPECT_LE(taken(), bound_of(kSize, kLive));
}

// Section 6: each in turn allocates, the next one frees.
TEST(HoardBlowup, RoundRobin) {
  start_with({{"HOARD_HEAPS", "8"}});
  for (size_t turn = 0; turn < 40; ++turn) hand_over(1 + turn % 8, 1 + (turn + 1) % 8);
  EXPECT_LE(taken(), kLive / blocks_of(kSize) + 1 + 8 * options.keep) << "here f costs nothing";
}

// f = 1 turns the transfers off: what is left is an allocator with private heaps and ownership.
TEST(HoardBlowup, RoundRobinWithoutTransfersNeedsPTimesAsMuch) {
  start_with({{"HOARD_HEAPS", "8"}, {"HOARD_EMPTY_FRACTION", "1"}});
  for (size_t turn = 0; turn < 40; ++turn) hand_over(1 + turn % 8, 1 + (turn + 1) % 8);
  EXPECT_EQ(taken(), 8 * (kLive / blocks_of(kSize) + 1));
}

// What OwnClassOfTheGlobalHeapComesBeforeRecycling is for.  Each round another class leaves empty superblocks.  Were
// they taken before those of the class in the global heap, which have one object each, every round would bring more
// from the system.
TEST(HoardBlowup, ThinSuperblocksAreFilledBeforeEmptyOnesAreRecycled) {
  start_with({{"HOARD_HEAPS", "1"}});
  size_t n = blocks_of(kSize), most = 0;
  for (size_t round = 0; round < 100; ++round) {
    give_all(get_many(options.keep * blocks_of(1000), 1000));
    std::vector<void*> blocks = get_many(8 * n, kSize);
    most = std::max(most, heaps[1].u() + heaps.global().u());
    for (size_t i = 0; i < blocks.size(); ++i)
      if (i % n != 0) give(blocks[i]);
  }
  EXPECT_LE(taken(), bound(most, n * 224, 2));
  EXPECT_TRUE(hoard::is_valid());
}

// Random operations by one thread under any options (hoard.cmake): the bound holds, and every structure is sound, all
// along.  Invariant 3 is examined by the library itself, after each operation.
class HoardRandom : public testing::Test {
 protected:
  void allocate_one(size_t size) {
    live_.push_back(get(size));
    if (size > classes.largest()) return;
    used_.insert(classes.of(size));
    most_ = std::max(most_, heaps.in_use());
  }
  void free_one() {
    std::swap(live_[random_() % live_.size()], live_.back());
    give(live_.back());
    live_.pop_back();
  }
  size_t allowed() {
    if (options.empty_fraction == kThousand) return SIZE_MAX;  // f = 1: no bound is promised
    size_t smallest = options.superblock;
    for (size_t c : used_) smallest = std::min<size_t>(smallest, classes[c].size * classes[c].blocks);
    return bound(most_, smallest, used_.size());
  }
  // Grows and shrinks, most sizes small.
  void run(size_t most_live, size_t largest) {
    constexpr size_t kOperations = 20'000;
    for (size_t i = 0; i < kOperations; ++i) {
      size_t wanted = i * 8 / kOperations % 2 == 0 ? most_live : most_live / 10;
      bool grow = live_.empty() || (random_() % 3 != 0) == (live_.size() < wanted);
      grow ? allocate_one(1 + random_() % (random_() % 4 == 0 ? largest : 200)) : free_one();
      ASSERT_LE(taken(), allowed());
      ASSERT_TRUE(i % 16 != 0 || hoard::is_valid()) << "after operation " << i;
    }
    while (!live_.empty()) free_one();
    expect_nothing_left();
  }
  std::mt19937 random_{20001112};
  std::vector<void*> live_;
  std::set<size_t> used_;  // size classes
  size_t most_ = 0;
};

TEST_F(HoardRandom, ManyClasses) { run(1200, 6000); }
TEST_F(HoardRandom, FewClasses) { run(3000, 250); }

// Superblocks on their way to the global heap and back, and from one size class to another.
#include "hoard_support.h"

using namespace hoard_test;

namespace {

constexpr size_t kSize = 496, kBlocks = 16, kFullA = kSize * kBlocks;

class HoardTransfer : public testing::Test {
 protected:
  void SetUp() override {
    start_with({{"HOARD_HEAPS", "4"}, {"HOARD_KEEP", "4"}});
    ASSERT_EQ(blocks_of(kSize), kBlocks);
  }
  static std::vector<void*> fill(size_t heap, size_t superblocks, size_t size = kSize) {
    std::vector<void*> blocks;
    on_heap(heap, [&] { blocks = get_many(superblocks * blocks_of(size), size); });
    return blocks;
  }
  // Of the global heap.
  static std::vector<void*> there(const std::vector<void*>& blocks) {
    std::vector<void*> found;
    for (void* block : blocks)
      if (superblock(block).owner() == &heaps.global()) found.push_back(block);
    return found;
  }
  Traffic& traffic_ = heaps.traffic;
};

}  // namespace

TEST_F(HoardTransfer, KSuperblocksOfFreeMemoryStay) {
  give_all(fill(1, 4));
  EXPECT_EQ(traffic_.to_global, 0u);
  EXPECT_EQ(heaps[1].a(), 4 * kFullA);
  give_all(fill(1, 5));
  EXPECT_EQ(traffic_.to_global, 1u);
  EXPECT_EQ(heaps[1].a(), 4 * kFullA);
  EXPECT_EQ(heaps.global().a(), kFullA);
  EXPECT_TRUE(hoard::is_valid());
}

TEST_F(HoardTransfer, ALargeHeapMayBeFEmpty) {
  auto blocks = fill(1, 40);
  for (size_t i = 0; i < 160; ++i) give(blocks[i % 40 * kBlocks + i / 40]);  // four of each: a quarter
  EXPECT_EQ(traffic_.to_global, 0u);
  give(blocks[4]);
  EXPECT_EQ(traffic_.to_global, 1u);
  EXPECT_EQ(superblock(blocks[5]).owner(), &heaps.global()) << "the only one that is more than f empty";
  EXPECT_EQ(heaps[1].u(), (40 * kBlocks - 161 - 11) * kSize);
  EXPECT_EQ(heaps[1].a(), 39 * kFullA);
  EXPECT_EQ(heaps.global().u(), 11 * kSize);
  EXPECT_EQ(heaps.global().a(), kFullA);
  EXPECT_TRUE(hoard::is_valid());
}

TEST_F(HoardTransfer, TheEmptiestGoes) {
  std::vector<void*> left = thin_out(fill(1, 6), 8);
  for (size_t i = 0; i < 8; ++i) give_all({left[2 * 8 + i], left[4 * 8 + i]});
  for (size_t i = 0; i < 2; ++i) give(left[i]);
  EXPECT_EQ(heaps[1].a() - heaps[1].u(), 66 * kSize) << "K superblocks, but for half a block";
  EXPECT_EQ(traffic_.to_global, 0u);
  give(left[2]);
  EXPECT_EQ(traffic_.to_global, 1u);
  EXPECT_EQ(heaps.global().u(), 0u) << "a completely empty one";
}

// u and a are the heap's, not a class's: what one class frees is too much for the heap, whatever goes.
TEST_F(HoardTransfer, AllClassesCountTogether) {
  auto blocks = fill(1, 3), others = fill(1, 3, 48);
  give_all(blocks);
  EXPECT_EQ(traffic_.to_global, 0u);
  give_all(others);
  EXPECT_EQ(traffic_.to_global, 2u);
  EXPECT_TRUE(hoard::is_valid());
}

// Malloc brings a superblock for each class and looks at no threshold; the next free does.
TEST_F(HoardTransfer, TheNextFreeMakesUpForWhatMallocBrought) {
  std::vector<void*> blocks;
  on_heap(1, [&] {
    for (size_t c = 0; c < classes.count(); ++c) blocks.push_back(get(classes[c].size));
  });
  EXPECT_TRUE(heaps[1].crosses_emptiness_threshold());
  EXPECT_EQ(traffic_.to_global, 0u);
  EXPECT_TRUE(hoard::is_valid());
  give(blocks[3]);
  EXPECT_FALSE(heaps[1].crosses_emptiness_threshold());
  EXPECT_GT(traffic_.to_global, 1u);
  EXPECT_TRUE(hoard::is_valid());
}

TEST_F(HoardTransfer, FreeIntoTheGlobalHeapStaysThere) {
  std::vector<void*> global = there(thin_out(fill(1, 20), 2));
  uint64_t transfers = traffic_.to_global;
  ASSERT_GT(global.size(), 0u);
  for (size_t left = global.size(); left > 0; --left) {
    EXPECT_EQ(heaps.global().u(), left * kSize);
    give(global[left - 1]);
    EXPECT_TRUE(hoard::is_valid());
  }
  EXPECT_EQ(traffic_.to_global, transfers);
}

TEST_F(HoardTransfer, AFreedBlockGoesToTheOwnerOfItsSuperblock) {
  auto blocks = fill(1, 1);
  on_heap(2, [&] {
    give(blocks[7]);
    EXPECT_EQ(heaps[1].u(), kFullA - kSize);
    EXPECT_NE(&superblock(get(kSize)), &superblock(blocks[0])) << "another heap has another superblock";
  });
  on_heap(1, [&] { EXPECT_EQ(get(kSize), blocks[7]); });
}

// Those of the heap itself, and those of the global one for another heap.
TEST_F(HoardTransfer, EmptySuperblocksServeAnyClass) {
  struct {
    size_t from, filled, to, served, size;
  } cases[] = {{1, 20, 2, 16, kSize}, {3, 4, 3, 4, 48}, {4, 20, 2, 16, 48}};  // all but K go to the global heap
  for (auto [from, filled, to, served, size] : cases) {
    give_all(fill(from, filled));
    size_t others = from == to ? 0 : heaps[to].a(), from_system = taken();
    Traffic before = traffic_;
    fill(to, served, size);
    EXPECT_EQ(taken(), from_system);
    EXPECT_EQ(traffic_.from_global, before.from_global + (from == to ? 0 : served));
    EXPECT_EQ(traffic_.recycled, before.recycled + (size == kSize ? 0 : served));
    EXPECT_EQ(heaps[to].a(), others + served * blocks_of(size) * size);
    EXPECT_EQ(heaps.global().a(), 0u);
    EXPECT_TRUE(hoard::is_valid());
  }
}

TEST_F(HoardTransfer, TheEmptiestComesFirst) {
  std::vector<void*> global = there(thin_out(fill(1, 20), 1));
  ASSERT_GT(global.size(), 2u);
  Superblock& emptied = superblock(global[0]);
  give(global[0]);
  on_heap(2, [&] { EXPECT_EQ(&superblock(get(kSize)), &emptied); });
}

// The order that the bound rests on: of its own class first, although there is an empty superblock in the heap itself.
TEST_F(HoardTransfer, OwnClassOfTheGlobalHeapComesBeforeRecycling) {
  thin_out(fill(1, 20), 1);  // in the global heap there are some with one block each
  give_all(fill(2, 2, 48));
  on_heap(2, [] { get(kSize); });
  EXPECT_EQ(traffic_.recycled, 0u);
  EXPECT_EQ(traffic_.from_global, 1u);
}

TEST_F(HoardTransfer, NothingGoesBackToTheSystem) {
  give_all(fill(1, 300));
  EXPECT_EQ(hoard::usage().allocated, 0u);
  EXPECT_EQ(hoard::usage().mapped, 300 * options.superblock);
}

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
  std::vector<void*> fill(size_t heap, size_t superblocks, size_t size = kSize) {
    std::vector<void*> blocks;
    on_heap(heap, [&] { blocks = allocate_many(superblocks * blocks_of(size), size); });
    return blocks;
  }
  // All but so many of each superblock.
  static std::vector<void*> thin_out(std::vector<void*>& blocks, size_t left_in_each) {
    std::vector<void*> left;
    size_t n = superblock(blocks[0]).blocks();
    for (size_t i = 0; i < blocks.size(); ++i)
      if (i % n < left_in_each) left.push_back(blocks[i]);
      else deallocate(blocks[i], "test");
    blocks.clear();
    return left;
  }
};

}  // namespace

TEST_F(HoardTransfer, KSuperblocksOfFreeMemoryStay) {
  auto blocks = fill(1, 4);
  free_all(blocks);
  EXPECT_EQ(heaps.traffic.to_global, 0u);
  EXPECT_EQ(heaps[1].a(), 4 * kFullA);
  blocks = fill(1, 5);
  free_all(blocks);
  EXPECT_EQ(heaps.traffic.to_global, 1u);
  EXPECT_EQ(heaps[1].a(), 4 * kFullA);
  EXPECT_EQ(heaps.global().a(), kFullA);
  EXPECT_TRUE(is_valid());
}

TEST_F(HoardTransfer, ALargeHeapMayBeFEmpty) {
  auto blocks = fill(1, 40);
  std::vector<void*> rest(blocks.begin(), blocks.end());
  for (size_t i = 0; i < 160; ++i) deallocate(rest[i % 40 * kBlocks + i / 40], "test");  // four of each: a quarter
  EXPECT_EQ(heaps.traffic.to_global, 0u);
  deallocate(rest[4], "test");
  EXPECT_EQ(heaps.traffic.to_global, 1u);
  EXPECT_EQ(superblock(rest[5]).owner(), &heaps.global()) << "the only one that is more than f empty";
  EXPECT_EQ(heaps[1].u(), (40 * kBlocks - 161 - 11) * kSize);
  EXPECT_EQ(heaps[1].a(), 39 * kFullA);
  EXPECT_EQ(heaps.global().u(), 11 * kSize);
  EXPECT_EQ(heaps.global().a(), kFullA);
  EXPECT_TRUE(is_valid());
}

TEST_F(HoardTransfer, TheEmptiestGoes) {
  auto blocks = fill(1, 6);
  std::vector<void*> left = thin_out(blocks, 8);
  for (size_t i = 0; i < 8; ++i) deallocate(left[2 * 8 + i], "test");
  for (size_t i = 0; i < 8; ++i) deallocate(left[4 * 8 + i], "test");
  for (size_t i = 0; i < 2; ++i) deallocate(left[i], "test");
  EXPECT_EQ(heaps[1].a() - heaps[1].u(), 66 * kSize) << "K superblocks, but for half a block";
  EXPECT_EQ(heaps.traffic.to_global, 0u);
  deallocate(left[2], "test");
  EXPECT_EQ(heaps.traffic.to_global, 1u);
  EXPECT_EQ(heaps.global().u(), 0u) << "a completely empty one";
}

// u and a are the heap's, not a class's: what one class frees is too much for the heap, whatever goes.
TEST_F(HoardTransfer, AllClassesCountTogether) {
  auto blocks = fill(1, 3);
  auto others = fill(1, 3, 48);
  free_all(blocks);
  EXPECT_EQ(heaps.traffic.to_global, 0u);
  free_all(others);
  EXPECT_EQ(heaps.traffic.to_global, 2u);
  EXPECT_TRUE(is_valid());
}

// Malloc brings a superblock for each class and looks at no threshold; the next free does.
TEST_F(HoardTransfer, TheNextFreeMakesUpForWhatMallocBrought) {
  std::vector<void*> blocks;
  on_heap(1, [&] {
    for (size_t c = 0; c < classes.count(); ++c) blocks.push_back(allocate(classes[c].size));
  });
  EXPECT_TRUE(heaps[1].crosses_emptiness_threshold());
  EXPECT_EQ(heaps.traffic.to_global, 0u);
  EXPECT_TRUE(is_valid());
  deallocate(blocks[3], "test");
  EXPECT_FALSE(heaps[1].crosses_emptiness_threshold());
  EXPECT_GT(heaps.traffic.to_global, 1u);
  EXPECT_TRUE(is_valid());
}

TEST_F(HoardTransfer, FreeIntoTheGlobalHeapStaysThere) {
  auto blocks = fill(1, 20);
  auto left = thin_out(blocks, 2);
  uint64_t transfers = heaps.traffic.to_global;
  size_t there = heaps.global().u(), freed = 0;
  ASSERT_GT(there, 0u);
  for (void* block : left)
    if (superblock(block).owner() == &heaps.global()) {
      deallocate(block, "test");
      EXPECT_EQ(heaps.global().u(), there - ++freed * kSize);
      EXPECT_TRUE(is_valid());
    }
  EXPECT_EQ(freed * kSize, there);
  EXPECT_EQ(heaps.traffic.to_global, transfers);
}

TEST_F(HoardTransfer, AFreedBlockGoesToTheOwnerOfItsSuperblock) {
  auto blocks = fill(1, 1);
  on_heap(2, [&] {
    deallocate(blocks[7], "test");
    EXPECT_EQ(heaps[1].u(), kFullA - kSize);
    EXPECT_NE(&superblock(allocate(kSize)), &superblock(blocks[0])) << "another heap has another superblock";
  });
  on_heap(1, [&] { EXPECT_EQ(allocate(kSize), blocks[7]); });
}

TEST_F(HoardTransfer, AnotherHeapReusesTheGlobalOnes) {
  auto blocks = fill(1, 20);
  free_all(blocks);
  size_t there = heaps.global().a() / kFullA, from_system = heaps.superblocks.taken();
  EXPECT_EQ(there, 16u) << "all but K";
  blocks = fill(2, there);
  EXPECT_EQ(heaps.superblocks.taken(), from_system);
  EXPECT_EQ(heaps.traffic.from_global, there);
  EXPECT_EQ(heaps.global().a(), 0u);
  EXPECT_EQ(heaps[2].a(), there * kFullA);
  EXPECT_TRUE(is_valid());
}

// Those of the heap itself, and those of the global one for another heap.
TEST_F(HoardTransfer, EmptySuperblocksServeAnyClass) {
  for (auto [filled, heap, served] : {std::array<size_t, 3>{4, 1, 4}, {20, 3, 16}}) {
    auto blocks = fill(heap, filled);
    free_all(blocks);
    size_t from_system = heaps.superblocks.taken(), recycled = heaps.traffic.recycled;
    size_t other = heap + (filled > served);
    blocks = fill(other, served, 48);
    EXPECT_EQ(heaps.superblocks.taken(), from_system);
    EXPECT_EQ(heaps.traffic.recycled, recycled + served);
    EXPECT_EQ(heaps[other].a(), served * blocks_of(48) * 48);
    EXPECT_EQ(heaps.global().a(), 0u);
    EXPECT_TRUE(is_valid());
  }
}

TEST_F(HoardTransfer, TheEmptiestComesFirst) {
  auto blocks = fill(1, 20);
  auto left = thin_out(blocks, 1);
  size_t there = heaps.global().a() / kFullA;
  ASSERT_GT(there, 2u);
  for (void*& block : left)
    if (superblock(block).owner() == &heaps.global()) {
      Superblock& s = superblock(block);
      deallocate(block, "test");
      on_heap(2, [&] { EXPECT_EQ(&superblock(allocate(kSize)), &s); });
      return;
    }
}

// The order that the bound rests on: of its own class first, although there is an empty superblock in the heap itself.
TEST_F(HoardTransfer, OwnClassOfTheGlobalHeapComesBeforeRecycling) {
  auto blocks = fill(1, 20);
  auto left = thin_out(blocks, 1);  // in the global heap there are some with one block each
  auto others = fill(2, 2, 48);
  free_all(others);
  on_heap(2, [&] { allocate(kSize); });
  EXPECT_EQ(heaps.traffic.recycled, 0u);
  EXPECT_EQ(heaps.traffic.from_global, 1u);
}

TEST_F(HoardTransfer, NothingGoesBackToTheSystem) {
  auto blocks = fill(1, 300);
  free_all(blocks);
  EXPECT_EQ(usage().allocated, 0u);
  EXPECT_EQ(usage().mapped, 300 * options.superblock);
}

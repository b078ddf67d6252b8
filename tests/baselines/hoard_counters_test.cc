// Table 3: objects that could be falsely shared.  Table 4: the most allocated and in use.
#include "hoard_support.h"

using namespace hoard_test;

namespace {

constexpr size_t kSize = 64, kTable = 50;

class HoardCounters : public testing::Test {
 protected:
  void SetUp() override {
    start_with({{"HOARD_HEAPS", "4"}});
    n_ = blocks_of(kSize);
  }
  // Heap 1 fills superblocks and frees all but `left` of each.
  std::vector<void*> leave(size_t left) {
    std::vector<void*> kept;
    on_heap(1, [&] { kept = thin_out(get_many(kTable * n_, kSize), left); });
    return kept;
  }
  size_t n_;
};

}  // namespace

TEST_F(HoardCounters, EmptySuperblocksShareNothing) {
  leave(0);
  on_heap(2, [] { get_many(1000, kSize); });
  EXPECT_GT(counter("transfers_from_global"), 0u);
  EXPECT_EQ(counter("objects_from_used_superblocks"), 0u);
  EXPECT_EQ(counter("objects_that_came_along"), 0u);
}

TEST_F(HoardCounters, ObjectsBesideAnotherHeapsCount) {
  leave(2);
  on_heap(2, [&] { get_many(3 * (n_ - 2), kSize); });
  EXPECT_EQ(counter("transfers_from_global"), 3u);
  EXPECT_EQ(counter("objects_from_used_superblocks"), 3 * (n_ - 2));
  EXPECT_EQ(counter("objects_that_came_along"), 6u);
}

TEST_F(HoardCounters, ItsOwnSuperblocksComeBackUnshared) {
  leave(2);
  on_heap(1, [] { get_many(kTable * 100, kSize); });
  EXPECT_GT(counter("transfers_from_global"), 0u);
  EXPECT_EQ(counter("objects_from_used_superblocks"), 0u);
}

TEST_F(HoardCounters, NoneOnceTheOthersObjectsAreGone) {
  auto kept = leave(2);
  void* mine = nullptr;
  on_heap(2, [&] { mine = get(kSize); });
  Superblock& s = superblock(mine);
  EXPECT_TRUE(s.is_used());
  for (void* block : kept)
    if (&superblock(block) == &s) give(block);
  give(mine);
  EXPECT_FALSE(s.is_used());
}

// What other heaps have in use counts as it is, not as it was when they had a superblock last.
TEST_F(HoardCounters, MostInUseIsOfTheSameMoment) {
  for (size_t heap : {1, 2, 3}) {
    std::vector<void*> blocks;
    on_heap(heap, [&] { blocks = get_many(4 * n_, kSize); });
    give_all(blocks);
  }
  EXPECT_LE(counter("max_in_use"), 4 * n_ * kSize);
  EXPECT_GE(counter("max_in_use"), 3 * n_ * kSize);
}

TEST_F(HoardCounters, MostAllocatedAndMostInUse) {
  std::vector<void*> blocks;
  on_heap(1, [&] { blocks = get_many(20 * n_, kSize); });
  char* large = get(300'000);
  size_t u = 20 * n_ * kSize + usable(large), a = 20 * options.superblock + usable(large);
  give_all(blocks);
  give(large);
  EXPECT_EQ(counter("max_allocated"), a);
  EXPECT_EQ(counter("max_in_use"), u);
  EXPECT_EQ(counter("objects"), 20 * n_);
  EXPECT_EQ(counter("large_objects"), 1u);
  EXPECT_EQ(counter("superblocks"), 20u);
  expect_nothing_left();
}

// Table 3: objects that could be falsely shared.  Table 4: the most allocated and in use.
#include "contract_support.h"
#include "hoard_support.h"

using namespace hoard_test;
using contract::counter;

namespace {

constexpr size_t kSize = 64, kTable = 50;

// Heap 1 fills superblocks and frees all but `left` of each.
std::vector<void*> leave(size_t left) {
  std::vector<void*> kept;
  size_t n = blocks_of(kSize);
  on_heap(1, [&] {
    auto blocks = allocate_many(kTable * n, kSize);
    for (size_t i = 0; i < blocks.size(); ++i)
      if (i % n < left) kept.push_back(blocks[i]);
      else deallocate(blocks[i], "test");
  });
  return kept;
}

}  // namespace

TEST(HoardCounters, EmptySuperblocksShareNothing) {
  start_with({{"HOARD_HEAPS", "4"}});
  leave(0);
  on_heap(2, [] { allocate_many(1000, kSize); });
  EXPECT_GT(counter("transfers_from_global"), 0u);
  EXPECT_EQ(counter("objects_from_used_superblocks"), 0u);
  EXPECT_EQ(counter("objects_that_came_along"), 0u);
}

TEST(HoardCounters, ObjectsBesideAnotherHeapsCount) {
  start_with({{"HOARD_HEAPS", "4"}});
  leave(2);
  size_t n = blocks_of(kSize);
  on_heap(2, [&] { allocate_many(3 * (n - 2), kSize); });
  EXPECT_EQ(counter("transfers_from_global"), 3u);
  EXPECT_EQ(counter("objects_from_used_superblocks"), 3 * (n - 2));
  EXPECT_EQ(counter("objects_that_came_along"), 6u);
}

TEST(HoardCounters, ItsOwnSuperblocksComeBackUnshared) {
  start_with({{"HOARD_HEAPS", "4"}});
  leave(2);
  on_heap(1, [] { allocate_many(kTable * 100, kSize); });
  EXPECT_GT(counter("transfers_from_global"), 0u);
  EXPECT_EQ(counter("objects_from_used_superblocks"), 0u);
}

TEST(HoardCounters, NoneOnceTheOthersObjectsAreGone) {
  start_with({{"HOARD_HEAPS", "4"}});
  auto kept = leave(2);
  void* mine = nullptr;
  on_heap(2, [&] { mine = allocate(kSize); });
  Superblock& s = superblock(mine);
  EXPECT_TRUE(s.is_used());
  for (void* block : kept)
    if (&superblock(block) == &s) deallocate(block, "test");
  deallocate(mine, "test");
  EXPECT_FALSE(s.is_used());
}

// What other heaps have in use counts as it is, not as it was when they had a superblock last.
TEST(HoardCounters, MostInUseIsOfTheSameMoment) {
  start_with({{"HOARD_HEAPS", "4"}});
  size_t n = blocks_of(kSize);
  for (size_t heap : {1, 2, 3}) {
    std::vector<void*> blocks;
    on_heap(heap, [&] { blocks = allocate_many(4 * n, kSize); });
    free_all(blocks);
  }
  EXPECT_LE(counter("max_in_use"), 4 * n * kSize);
  EXPECT_GE(counter("max_in_use"), 3 * n * kSize);
}

TEST(HoardCounters, MostAllocatedAndMostInUse) {
  start_with({{"HOARD_HEAPS", "4"}});
  size_t n = blocks_of(kSize);
  std::vector<void*> blocks;
  on_heap(1, [&] { blocks = allocate_many(20 * n, kSize); });
  void* large = allocate(300'000);
  size_t u = 20 * n * kSize + usable_size(large, "test"), a = 20 * options.superblock + usable_size(large, "test");
  free_all(blocks);
  deallocate(large, "test");
  EXPECT_EQ(counter("max_allocated"), a);
  EXPECT_EQ(counter("max_in_use"), u);
  EXPECT_EQ(usage().allocated, 0u);
  EXPECT_EQ(counter("objects"), 20 * n);
  EXPECT_EQ(counter("large_objects"), 1u);
  EXPECT_EQ(counter("superblocks"), 20u);
}

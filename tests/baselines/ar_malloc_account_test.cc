// What it says of itself: the account of memory, the counters, and whether its structures are sound.
#include "ar_malloc_support.h"

using namespace hm;
using namespace hm::ar_malloc;

TEST(Usage, CountsWhatTheProgramHas) {
  EXPECT_EQ(usage().allocated, 0u);
  std::vector<void*> blocks = allocate_many(100, 100);
  void* large = allocate(100 * kKiB);
  EXPECT_EQ(usage().allocated, 100 * 112 + 100 * kKiB);
  EXPECT_EQ(usage().cached, 28 * 112u) << "of four batches";
  ar_malloc::free(blocks.back());
  blocks.pop_back();
  EXPECT_EQ(usage().allocated, 99 * 112 + 100 * kKiB);
  EXPECT_EQ(usage().cached, 29 * 112u);
  EXPECT_EQ(usage().mapped, kSlab + kChunk);
  free_all(blocks);
  ar_malloc::free(large);
  EXPECT_EQ(usage().allocated, 0u);
}

TEST(Usage, TheCountersAreMembersOfAnObject) {
  start_with("3");
  ar_malloc::free(allocate(10));
  EXPECT_EQ(contract::counters(),
            ",\"arenas\":3,\"threads\":1,\"slabs\":1,\"slab_cuts\":1,\"arena_locks\":1,\"blocks_out\":32,"
            "\"blocks_back\":0,\"blocks_foreign\":0");
}

TEST(Validity, FindsABlockThatIsInACacheAndFree) {
  void* block = allocate(100);
  EXPECT_TRUE(is_valid());
  ar_malloc::free(block);
  slab_of(block).give_back(block);
  EXPECT_FALSE(is_valid());
}

TEST(Validity, FindsABlockInTheCacheOfAnotherClass) {
  void* block = allocate(100);
  EXPECT_TRUE(is_valid());
  list_of(200).push(static_cast<FreeBlock*>(block));
  EXPECT_FALSE(is_valid());
}

TEST(Validity, FindsASlabThatSaysItIsFull) {
  Slab& slab = slab_of(allocate(5000));
  EXPECT_TRUE(is_valid());
  slab.free = 0;
  EXPECT_FALSE(is_valid());
}

TEST(Validity, FindsASlabThatIsInNoList) {
  std::vector<void*> blocks = allocate_many(20, 5000);  // two slabs
  ar_malloc::free(blocks.front());
  ar_malloc::free(blocks.back());
  EXPECT_TRUE(is_valid());
  Slab& last = slab_of(blocks.front()).next == nullptr ? slab_of(blocks.front()) : slab_of(blocks.back());
  last.previous->next = nullptr;
  EXPECT_FALSE(is_valid());
}

TEST(Validity, FindsASlabOfAnotherClass) {
  Slab& slab = slab_of(allocate(5000));
  slab.size_class = class_of(100);
  EXPECT_FALSE(is_valid());
}

#include "core/block_cache.h"

#include "support.h"

using namespace hm;

namespace {

struct BlockCaches : testing::Test {
  void* slots[9]{};
  BlockCache cache{slots};
  BlockCaches() { cache.set_limit(4); }
  static void* block(uintptr_t n) { return reinterpret_cast<void*>(n * 16); }
};

}  // namespace

TEST_F(BlockCaches, LastInFirstOutUpToTheLimit) {
  for (uintptr_t n = 1; n <= 4; ++n) EXPECT_TRUE(cache.push(block(n)));
  EXPECT_FALSE(cache.push(block(5)));
  EXPECT_EQ(cache.size(), 4u);
  cache.set_limit(5);
  EXPECT_TRUE(cache.push(block(5)));
  EXPECT_EQ(cache.top_block(), block(5));
  for (uintptr_t n = 5; n >= 1; --n) EXPECT_EQ(cache.pop(), block(n));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(cache.pop(), nullptr) << "for ever";
  EXPECT_EQ(cache.size(), 0u);
}

TEST_F(BlockCaches, RefusesAnImmediateRepeat) {
  EXPECT_TRUE(cache.push_once(block(1)));
  EXPECT_FALSE(cache.push_once(block(1)));
  EXPECT_EQ(cache.size(), 1u);
}

TEST(BlockCacheWithoutRoom, IsEmptyAndFull) {
  void* slot[1] = {nullptr};
  BlockCache cache{slot};
  EXPECT_EQ(cache.pop(), nullptr);
  EXPECT_FALSE(cache.push(reinterpret_cast<void*>(16)));
  EXPECT_EQ(slot[0], nullptr);
}

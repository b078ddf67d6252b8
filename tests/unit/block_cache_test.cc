#include "core/block_cache.h"

#include "support.h"

using namespace hm;

namespace {
struct Room {
  void* slots[9]{};
  BlockCache cache{slots};
  Room() { cache.set_limit(4); }
};
void* block(uintptr_t n) { return reinterpret_cast<void*>(n * 16); }
}  // namespace

TEST(BlockCache, EmptyPopsNullForEver) {
  Room room;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(room.cache.pop(), nullptr);
  EXPECT_EQ(room.cache.size(), 0u);
}

TEST(BlockCache, LastInFirstOut) {
  Room room;
  for (uintptr_t n = 1; n <= 4; ++n) EXPECT_TRUE(room.cache.push(block(n)));
  EXPECT_EQ(room.cache.top_block(), block(4));
  for (uintptr_t n = 4; n >= 1; --n) EXPECT_EQ(room.cache.pop(), block(n));
  EXPECT_EQ(room.cache.pop(), nullptr);
}

TEST(BlockCache, RefusesBeyondTheLimit) {
  Room room;
  for (uintptr_t n = 1; n <= 4; ++n) room.cache.push(block(n));
  EXPECT_FALSE(room.cache.push(block(5)));
  EXPECT_EQ(room.cache.size(), 4u);
  room.cache.set_limit(5);
  EXPECT_TRUE(room.cache.push(block(5)));
}

TEST(BlockCache, RefusesAnImmediateRepeat) {
  Room room;
  EXPECT_TRUE(room.cache.push_once(block(1)));
  EXPECT_FALSE(room.cache.push_once(block(1)));
  EXPECT_EQ(room.cache.size(), 1u);
}

TEST(BlockCache, ACacheWithoutRoomIsEmptyAndFull) {
  void* slot[1] = {nullptr};
  BlockCache cache{slot};
  EXPECT_EQ(cache.pop(), nullptr);
  EXPECT_FALSE(cache.push(block(1)));
  EXPECT_EQ(slot[0], nullptr);
}

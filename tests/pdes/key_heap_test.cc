#include "pdes/key_heap.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "keys.h"

namespace pdes {
namespace {

TEST(KeyHeap, GivesKeysInOrder) {
  for (test::Shape shape : test::kShapes) {
    std::vector<Key> keys = test::keys(shape, 1000, 3);
    KeyHeap heap;
    for (const Key& key : keys) heap.push(key);
    std::sort(keys.begin(), keys.end());
    for (const Key& key : keys) {
      EXPECT_EQ(heap.least().tie, key.tie);
      EXPECT_EQ(heap.pop().tie, key.tie);
    }
    EXPECT_TRUE(heap.empty());
  }
}

TEST(KeyHeap, DrainGivesEveryKeyOnce) {
  KeyHeap heap;
  for (const Key& key : test::keys(test::Shape::uniform, 100, 4)) heap.push(key);
  std::vector<std::uint64_t> ties;
  heap.drain([&](const Key& key) { ties.push_back(key.tie & 0xffffffff); });
  std::sort(ties.begin(), ties.end());
  ASSERT_EQ(ties.size(), 100u);
  for (std::size_t i = 0; i < ties.size(); ++i) EXPECT_EQ(ties[i], i);
  EXPECT_TRUE(heap.empty());
}

}  // namespace
}  // namespace pdes

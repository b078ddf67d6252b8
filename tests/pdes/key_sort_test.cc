#include "pdes/key_sort.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "keys.h"

namespace pdes {
namespace {

bool same(const Key& a, const Key& b) { return a.time == b.time && a.tie == b.tie; }

TEST(KeySort, SortsWhatStdSortSorts) {
  KeySort sort;
  for (test::Shape shape : test::kShapes) {
    for (std::size_t count : {1, 2, 11, 12, 13, 100, 1000, 70000}) {
      std::vector<Key> keys = test::keys(shape, count, count), expected = keys, sorted(count);
      std::sort(expected.begin(), expected.end());
      Time to = std::max_element(keys.begin(), keys.end())->time;
      sort(keys, sorted.data(), 0, to);
      EXPECT_TRUE(std::equal(sorted.begin(), sorted.end(), expected.begin(), same))
          << "shape " << static_cast<int>(shape) << ", " << count << " keys";
    }
  }
}

TEST(KeySort, GroupsOfTiesAmongOtherTimes) {
  std::vector<Key> keys = test::keys(test::Shape::uniform, 500, 1);
  for (const Key& key : test::keys(test::Shape::ties, 500, 2)) keys.push_back({0.5, key.tie, nullptr});
  std::vector<Key> expected = keys, sorted(keys.size());
  std::sort(expected.begin(), expected.end());
  KeySort()(keys, sorted.data(), 0, 1);
  EXPECT_TRUE(std::equal(sorted.begin(), sorted.end(), expected.begin(), same));
}

TEST(KeySort, TimesBeyondWhatWasSaid) {
  std::vector<Key> keys = test::keys(test::Shape::uniform, 100, 1), sorted(keys.size());
  keys[7].time = 1.7e308;
  keys[9].time = -1.7e308;
  for (auto [from, to] : {std::pair{0.25, 0.5}, {0.5, 0.5}, {-1.7e308, 1.7e308}, {2.0, 1.0}}) {
    KeySort()(keys, sorted.data(), from, to);
    EXPECT_TRUE(std::is_sorted(sorted.begin(), sorted.end())) << from;
  }
}

}  // namespace
}  // namespace pdes

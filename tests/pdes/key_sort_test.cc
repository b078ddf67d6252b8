#include "pdes/key_sort.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "keys.h"

namespace pdes {
namespace {

void expect_sorted(const std::vector<Key>& keys, Time from, Time to) {
  static KeySort sort;
  std::vector<Key> expected = keys, sorted(keys.size());
  std::sort(expected.begin(), expected.end());
  std::vector<std::span<const Key>> pieces;  // of different lengths
  for (std::size_t at = 0, length = 1; at < keys.size(); at += length, length = length % 20 + 1)
    pieces.push_back(std::span(keys).subspan(at, std::min(length, keys.size() - at)));
  sort(pieces, keys.size(), sorted.data(), from, to);
  const auto same = [](const Key& a, const Key& b) { return a.time == b.time && a.tie == b.tie; };
  EXPECT_TRUE(std::equal(sorted.begin(), sorted.end(), expected.begin(), same))
      << keys.size() << " keys from " << from << " to " << to;
}

TEST(KeySort, SortsWhatStdSortSorts) {
  for (test::Shape shape : test::kShapes) {
    SCOPED_TRACE(static_cast<int>(shape));
    for (std::size_t count : {1, 2, 11, 12, 13, 100, 1000, 70000}) {
      const std::vector<Key> keys = test::keys(shape, count, count);
      expect_sorted(keys, 0, std::max_element(keys.begin(), keys.end())->time);
    }
  }
}

TEST(KeySort, GroupsOfTiesAmongOtherTimes) {
  std::vector<Key> keys = test::keys(test::Shape::uniform, 500, 1);
  for (const Key& key : test::keys(test::Shape::ties, 500, 2)) keys.push_back({0.5, key.tie, nullptr});
  expect_sorted(keys, 0, 1);
}

// More from one source than a slot should hold; in the order in which they were sent, and not.
TEST(KeySort, ManyTiesOfOneSource) {
  std::vector<Key> keys;
  for (std::uint32_t i = 0; i < 5000; ++i) keys.push_back({0.5, tie_of(0, i % 2 == 0 ? 7 : i, i), nullptr});
  expect_sorted(keys, 0, 1);
  std::reverse(keys.begin(), keys.end());
  expect_sorted(keys, 0, 1);
}

TEST(KeySort, TimesBeyondWhatWasSaid) {
  std::vector<Key> keys = test::keys(test::Shape::uniform, 100, 1);
  keys[7].time = 1.7e308;
  keys[9].time = -1.7e308;
  for (auto [from, to] : {std::pair{0.25, 0.5}, {0.5, 0.5}, {-1.7e308, 1.7e308}, {2.0, 1.0}}) expect_sorted(keys, from, to);
}

}  // namespace
}  // namespace pdes

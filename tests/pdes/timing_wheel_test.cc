#include "pdes/timing_wheel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>

#include "keys.h"

namespace pdes {
namespace {

struct Later {
  bool operator()(const Key& a, const Key& b) const { return b < a; }
};
using Oracle = std::priority_queue<Key, std::vector<Key>, Later>;

// Holds a population while time goes on, in windows of different length, and compares with the standard's heap.
void hold(TimingWheel& wheel, test::Shape shape, std::size_t population, std::size_t events, Time window) {
  std::mt19937_64 random(population + events);
  Oracle oracle;
  std::uint32_t sequence = 0;
  auto send = [&](Time now) {
    Key key{now + test::delay(shape, random), tie_of(0, static_cast<LpId>(random() % 100), sequence++), nullptr};
    wheel.push(key);
    oracle.push(key);
  };
  for (std::size_t i = 0; i < population; ++i) send(0);
  wheel.start();
  std::size_t done = 0;
  while (done < events) {
    Time bound = wheel.lower_bound();
    ASSERT_LE(bound, oracle.top().time);
    bound += window;
    for (const Key* least; done < events && (least = wheel.peek(bound)) != nullptr; ++done) {
      ASSERT_TRUE(done % 97 != 0 || wheel.is_valid()) << "after " << done << " events";
      const Key key = *least;
      wheel.pop(least);
      ASSERT_EQ(key.tie, oracle.top().tie) << "after " << done << " events";
      oracle.pop();
      send(key.time);
    }
  }
  EXPECT_EQ(wheel.size(), population);
  EXPECT_TRUE(wheel.is_valid());
}

bool same_place(const Key& a, const Key& b) { return a.time == b.time && a.tie == b.tie; }

class WheelHolds : public testing::TestWithParam<test::Shape> {
 protected:
  TimingWheel wheel_{Queue::wheel, 0.1}, unbounded_{Queue::wheel, 0}, heap_{Queue::heap, 0.1};
};
INSTANTIATE_TEST_SUITE_P(Shapes, WheelHolds, testing::ValuesIn(test::kShapes));

// In the middle of a bucket that is open: of each three keys one, of one time all.
TEST_P(WheelHolds, WhatIsLeftWhenSomeLeave) {
  for (TimingWheel* wheel : {&wheel_, &heap_}) {
    for (const auto& leaves :
         {std::function([](const Key& key) { return key.tie % 3 == 0; }),
          std::function([](const Key& key) { return key.tie % 3 != 0; }), std::function([](const Key&) { return true; })}) {
      for (const Key& key : test::keys(GetParam(), 3000, 7)) wheel->push(key);
      if (wheel->retunings() == 0 && wheel->width() == 0) wheel->start();
      for (const Time late : {0.0, 0.0, 0.5}) {
        wheel->pop(wheel->peek(kNever));
        wheel->push({late, 3, nullptr});
        wheel->push({late, 4, nullptr});
      }
      std::vector<Key> all = wheel->keys(), left;
      const auto staying = std::partition(all.begin(), all.end(), leaves);
      wheel->sift(leaves, left);
      ASSERT_TRUE(wheel->is_valid());
      std::sort(left.begin(), left.end());
      std::sort(all.begin(), staying);
      ASSERT_TRUE(std::equal(all.begin(), staying, left.begin(), left.end(), same_place));
      std::sort(staying, all.end());
      for (auto key = staying; key != all.end(); ++key) {
        const Key* least = wheel->peek(kNever);
        ASSERT_TRUE(least != nullptr && same_place(*least, *key));
        wheel->pop(least);
      }
      EXPECT_EQ(wheel->size(), 0u);
    }
  }
}

TEST_P(WheelHolds, FewKeys) { hold(wheel_, GetParam(), 3, 2000, 0.1); }
TEST_P(WheelHolds, ManyKeys) { hold(wheel_, GetParam(), 5000, 20000, 0.1); }
TEST_P(WheelHolds, WithoutALookahead) { hold(unbounded_, GetParam(), 2000, 10000, 1e-4); }
TEST_P(WheelHolds, AsAHeap) {
  hold(heap_, GetParam(), 1000, 5000, 0.1);
  EXPECT_EQ(heap_.width(), 0);
}

TEST(TimingWheel, LongGapsAreNotSteppedThrough) {
  TimingWheel wheel(Queue::wheel, 1e-3);
  for (std::uint64_t i = 0; i < 60; ++i) wheel.push({std::ldexp(1.0, static_cast<int>(i)), i, nullptr});
  wheel.start();
  for (std::uint64_t i = 0; i < 60; ++i) {
    const Key* least = wheel.peek(kNever);
    ASSERT_NE(least, nullptr);
    EXPECT_EQ(least->tie, i);
    wheel.pop(least);
  }
  EXPECT_EQ(wheel.peek(kNever), nullptr);
  EXPECT_EQ(wheel.lower_bound(), kNever);
}

// Windows far below the next key must come to it in a few steps.
TEST(TimingWheel, TheLowerBoundReachesTheNextKey) {
  TimingWheel wheel(Queue::wheel, 1e-3);
  wheel.push({1e-3, 0, nullptr});
  for (std::uint64_t i = 1; i <= 100; ++i) wheel.push({1e6 + static_cast<double>(i) * 1e-5, i, nullptr});
  wheel.start();
  wheel.pop(wheel.peek(kNever));
  int steps = 0;
  while (wheel.peek(wheel.lower_bound() + 1e-3) == nullptr) ASSERT_LT(++steps, 10);
}

TEST(TimingWheel, AWrongWidthIsMended) {
  TimingWheel wheel(Queue::wheel, 0);
  hold(wheel, test::Shape::one, 1, 1, 1);  // tells nothing of the width
  const double width = wheel.width();
  for (const Key& key : test::keys(test::Shape::uniform, 20000, 1)) wheel.push({1 + key.time, key.tie, nullptr});
  for (const Key& key : test::keys(test::Shape::uniform, 100000, 2)) {
    const Key* least = wheel.peek(kNever);
    const Time now = least->time;
    wheel.pop(least);
    wheel.push({now + 0.01 + key.time, key.tie, nullptr});
  }
  EXPECT_GT(wheel.retunings(), 0u);
  EXPECT_NE(wheel.width(), width);
  EXPECT_TRUE(wheel.is_valid());
}

// Each step executes all keys and sends as many for one lookahead later.
TEST(TimingWheel, SimultaneousKeysDoNotNarrowTheBuckets) {
  TimingWheel wheel(Queue::wheel, 1);
  for (std::uint64_t i = 0; i < 5000; ++i) wheel.push({1, i, nullptr});
  wheel.start();
  for (std::uint64_t i = 0; i < 60 * 5000; ++i) {
    const Key* least = wheel.peek(kNever);
    const Key key = *least;
    ASSERT_EQ(key.tie, i % 5000);
    wheel.pop(least);
    wheel.push({key.time + 1, key.tie, nullptr});
  }
  EXPECT_EQ(wheel.late(), 0u);
  EXPECT_EQ(wheel.retunings(), 0u);
}

// Half of the keys are late whatever the width is.
TEST(TimingWheel, SimultaneousKeysThatSendOthersWithoutDelay) {
  TimingWheel wheel(Queue::wheel, 1e-6);
  for (std::uint64_t i = 0; i < 64; ++i) wheel.push({1, 2 * i, nullptr});
  wheel.start();
  for (int i = 0; i < 2'000'000; ++i) {
    const Key* least = wheel.peek(kNever);
    const Key key = *least;
    wheel.pop(least);
    if (key.tie % 2 != 0) continue;
    wheel.push({key.time, key.tie + 1, nullptr});
    wheel.push({key.time + 1, key.tie, nullptr});
  }
  EXPECT_EQ(wheel.retunings(), 0u);
}

// What the first keys tell of the width is wrong: they are all of one time.
TEST(TimingWheel, FirstKeysAtOneTime) {
  TimingWheel wheel(Queue::wheel, 0);
  std::mt19937_64 random(1);
  std::exponential_distribution<double> delay(1e6);
  for (std::uint64_t i = 0; i < 10000; ++i) wheel.push({0, i, nullptr});
  wheel.start();
  for (std::uint64_t i = 10000; i < 500000; ++i) {
    const Key* least = wheel.peek(kNever);
    const Time now = least->time;
    wheel.pop(least);
    wheel.push({now + delay(random), i, nullptr});
  }
  EXPECT_LT(wheel.late(), 150000u);
  EXPECT_TRUE(wheel.is_valid());
}

// How many of 200000 keys are late without a lookahead, and how often the width changes.
std::pair<std::uint64_t, std::uint64_t> late_and_retunings(std::size_t pending) {
  TimingWheel wheel(Queue::wheel, 0);
  std::mt19937_64 random(pending);
  std::exponential_distribution<double> delay;
  for (std::uint64_t i = 0; i < pending; ++i) wheel.push({delay(random), i, nullptr});
  wheel.start();
  for (std::uint64_t i = pending; i < 200000; ++i) {
    const Key* least = wheel.peek(kNever);
    const Time now = least->time;
    wheel.pop(least);
    wheel.push({now + delay(random), i, nullptr});
  }
  return {wheel.late(), wheel.retunings()};
}

TEST(TimingWheel, FewKeysWithoutALookahead) {
  for (const std::size_t pending : {64, 512}) {
    const auto [late, retunings] = late_and_retunings(pending);
    EXPECT_LT(late, 200000u / 2) << pending;
    EXPECT_LE(retunings, 3u) << pending;
  }
  EXPECT_EQ(late_and_retunings(8).second, 0u);  // a heap is as good
}

TEST(TimingWheel, MemoryComesBackAfterABurst) {
  TimingWheel wheel(Queue::wheel, 0.1);
  wheel.start();
  for (std::uint64_t i = 0; i < 500000; ++i) wheel.push({1 + 1e-5 * static_cast<double>(i), i, nullptr});
  std::size_t most = wheel.bytes();
  EXPECT_LT(most, 500000u * 40);
  while (const Key* least = wheel.peek(kNever)) wheel.pop(least);
  EXPECT_LT(wheel.bytes(), most / 4);
}

// From buckets, the open one, and the heap of late keys.
TEST(TimingWheel, DrainGivesEveryKeyOnce) {
  for (Queue kind : {Queue::wheel, Queue::heap}) {
    TimingWheel wheel(kind, 0.1);
    for (std::uint64_t i = 0; i < 1000; ++i) wheel.push({1 + 1e-3 * static_cast<double>(i), i, nullptr});
    wheel.start();
    for (int i = 0; i < 10; ++i) wheel.pop(wheel.peek(kNever));
    for (std::uint64_t i = 0; i < 10; ++i) wheel.push({0, i, nullptr});
    std::vector<std::uint64_t> ties, all(1000);
    for (const Key& key : wheel.drain()) ties.push_back(key.tie);
    std::sort(ties.begin(), ties.end());
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(ties, all);
    EXPECT_EQ(wheel.size(), 0u);
    EXPECT_EQ(wheel.peek(kNever), nullptr);
  }
}

}  // namespace
}  // namespace pdes

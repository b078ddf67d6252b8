#include "engine/channel.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace pdes {
namespace {

struct Item {
  std::uint64_t number, check;
};
constexpr auto kChunk = Channel<Item>::kChunk;

std::vector<std::uint64_t> drained(Channel<Item>& channel) {
  std::vector<std::uint64_t> numbers;
  channel.drain([&](const Item& item) { numbers.push_back(item.number); });
  return numbers;
}

void fill(Channel<Item>& channel, std::size_t items) {
  for (std::size_t i = 0; i < items; ++i) channel.push({i, 0});
  channel.publish();
}

TEST(Channel, HidesWhatIsNotPublished) {
  Channel<Item> channel;
  channel.push({1, 0});
  EXPECT_EQ(drained(channel), std::vector<std::uint64_t>{});
  channel.publish();
  channel.push({2, 0});
  EXPECT_EQ(drained(channel), std::vector<std::uint64_t>{1});
  EXPECT_EQ(drained(channel), std::vector<std::uint64_t>{});
  channel.publish();
  EXPECT_EQ(drained(channel), std::vector<std::uint64_t>{2});
}

TEST(Channel, SteadyFlowNeedsNoMoreMemory) {
  Channel<Item> channel;
  const std::size_t before = channel.bytes();
  for (int i = 0; i < 1000; ++i) {
    fill(channel, kChunk - 1);
    EXPECT_EQ(drained(channel).size(), kChunk - 1);
  }
  EXPECT_LE(channel.bytes(), 2 * before);
}

// AddressSanitizer looks for what the channel leaves behind at its end: items, and chunks that it had left.
TEST(Channel, GivesTheMemoryOfABurstBack) {
  Channel<Item> channel;
  const std::size_t before = channel.bytes();
  fill(channel, 100 * kChunk);
  EXPECT_EQ(channel.bytes(), 100 * before);
  EXPECT_EQ(drained(channel).size(), 100 * kChunk);
  fill(channel, 1);
  EXPECT_LE(channel.bytes(), (2 + Channel<Item>::kSpare) * before);
}

// The items are plain memory: ThreadSanitizer looks whether publishing orders them, and reuse of their chunks.
TEST(Channel, BringsAllInOrder) {
  constexpr std::uint64_t kItems = 300000;
  Channel<Item> channel;
  std::jthread producer([&] {
    for (std::uint64_t i = 0; i < kItems; ++i) {
      channel.push({i, ~i});
      if (i % 32 == 0) channel.publish();
    }
    channel.publish();
  });
  std::uint64_t next = 0, wrong = 0;
  while (next < kItems) {
    const auto took = channel.drain([&](const Item& item) {
      wrong += item.number != next || item.check != ~next;
      ++next;
    });
    if (took == 0) std::this_thread::yield();
  }
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace pdes

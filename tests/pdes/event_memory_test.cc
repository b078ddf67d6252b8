#include "pdes/event_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

namespace pdes {
namespace {

struct Case {
  Allocator allocator;
  Blocks blocks;
};
class EventMemoryOf : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Cases, EventMemoryOf,
                         testing::Values(Case{Allocator::hmalloc, Blocks::automatic},
                                         Case{Allocator::hmalloc, Blocks::dense}, Case{Allocator::hmalloc, Blocks::lines},
                                         Case{Allocator::malloc, Blocks::automatic},
                                         Case{Allocator::free_list, Blocks::automatic}));

TEST_P(EventMemoryOf, BlocksDoNotOverlapAndCountsComeBackToZero) {
  constexpr std::size_t kSizes[] = {8, 9, 16, 24, 63, 64, 65, 200, 1024, 1032, 5000, 32768};
  EventMemory memory(GetParam().allocator, GetParam().blocks, true);
  memory.take_caches();
  for (int round = 0; round < 3; ++round) {
    std::vector<Event*> events;
    for (std::size_t i = 0; i < 2000; ++i) {
      const std::size_t size = kSizes[i % std::size(kSizes)];
      events.push_back(memory.allocate(size));
      ASSERT_NE(events.back(), nullptr);
      std::memset(events.back()->payload(), static_cast<int>(i & 0xff), size - sizeof(Event));
    }
    EXPECT_GT(memory.held(), 0);
    for (std::size_t i = 0; i < events.size(); ++i) {
      const std::size_t size = kSizes[i % std::size(kSizes)];
      const auto* bytes = static_cast<unsigned char*>(events[i]->payload());
      ASSERT_TRUE(std::all_of(bytes, bytes + size - sizeof(Event), [=](unsigned char byte) { return byte == (i & 0xff); }));
      memory.release(events[i], size);
    }
    EXPECT_EQ(memory.held(), 0);
  }
}

TEST_P(EventMemoryOf, AnotherThreadMayRelease) {
  EventMemory memory(GetParam().allocator, GetParam().blocks, true), other(GetParam().allocator, GetParam().blocks, true);
  for (int round = 0; round < 10; ++round) {
    std::vector<Event*> events(1000);
    for (Event*& event : events) event = memory.allocate(48);
    std::thread([&] {
      other.take_caches();
      for (Event* event : events) other.release(event, 48);
      for (Event*& event : events) event = other.allocate(48);
      other.drop_caches();
    }).join();
    for (Event* event : events) memory.release(event, 48);
  }
  EXPECT_EQ(memory.held() + other.held(), 0);
}

TEST(EventMemory, LinesAreLines) {
  EventMemory memory(Allocator::hmalloc, Blocks::lines, false);
  Event* event = memory.allocate(16);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(event) % 64, 0u);
  EXPECT_EQ(memory.held(), 64);
  memory.release(event, 16);
}

TEST(EventMemory, AutomaticBlocks) {
  EventMemory alone(Allocator::hmalloc, Blocks::automatic, false), shared(Allocator::hmalloc, Blocks::automatic, true);
  EXPECT_STREQ(alone.kind(), "dense");
  EXPECT_STREQ(shared.kind(), "lines");
  Event* line = shared.allocate(16);
  alone.adapt(1'000'000);
  shared.adapt(1'000'000);
  EXPECT_STREQ(alone.kind(), "dense");
  EXPECT_STREQ(shared.kind(), "dense and lines");
  Event* dense = shared.allocate(16);
  EXPECT_EQ(shared.held(), 64 + 16);
  shared.release(line, 16);  // as it was allocated, whatever is chosen now
  shared.release(dense, 16);
  EXPECT_EQ(shared.held(), 0);
}

}  // namespace
}  // namespace pdes

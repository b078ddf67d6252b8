#include "pdes/event_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

namespace pdes {
namespace {

class EventMemoryOf : public testing::TestWithParam<std::pair<Allocator, Blocks>> {
 protected:
  EventMemory memory_{GetParam().first, GetParam().second, true}, other_{GetParam().first, GetParam().second, true};
};
INSTANTIATE_TEST_SUITE_P(Cases, EventMemoryOf,
                         testing::Values(std::pair{Allocator::hmalloc, Blocks::automatic},
                                         std::pair{Allocator::hmalloc, Blocks::dense},
                                         std::pair{Allocator::hmalloc, Blocks::lines},
                                         std::pair{Allocator::malloc, Blocks::automatic},
                                         std::pair{Allocator::free_list, Blocks::automatic}));

TEST_P(EventMemoryOf, BlocksDoNotOverlapAndCountsComeBackToZero) {
  constexpr std::size_t kSizes[] = {8, 9, 16, 24, 63, 64, 65, 200, 1024, 1032, 5000, 32768};
  memory_.take_caches();
  for (int round = 0; round < 3; ++round) {
    std::vector<Event*> events;
    for (std::size_t i = 0; i < 2000; ++i) {
      const std::size_t size = kSizes[i % std::size(kSizes)];
      events.push_back(memory_.allocate(size));
      ASSERT_NE(events.back(), nullptr);
      std::memset(events.back()->payload(), static_cast<int>(i & 0xff), size - sizeof(Event));
    }
    EXPECT_GT(memory_.held(), 0);
    for (std::size_t i = 0; i < events.size(); ++i) {
      const std::size_t size = kSizes[i % std::size(kSizes)];
      const auto* bytes = static_cast<unsigned char*>(events[i]->payload());
      ASSERT_TRUE(std::all_of(bytes, bytes + size - sizeof(Event), [=](unsigned char byte) { return byte == (i & 0xff); }));
      memory_.release(events[i], size);
    }
    EXPECT_EQ(memory_.held(), 0);
  }
}

TEST_P(EventMemoryOf, AnotherThreadMayRelease) {
  for (int round = 0; round < 10; ++round) {
    std::vector<Event*> events(1000);
    for (Event*& event : events) event = memory_.allocate(48);
    std::thread([&] {
      other_.take_caches();
      for (Event* event : events) other_.release(event, 48);
      for (Event*& event : events) event = other_.allocate(48);
      other_.drop_caches();
    }).join();
    for (Event* event : events) memory_.release(event, 48);
  }
  EXPECT_EQ(memory_.held() + other_.held(), 0);
}

TEST(EventMemory, AutomaticBlocks) {
  EventMemory alone(Allocator::hmalloc, Blocks::automatic, false), shared(Allocator::hmalloc, Blocks::automatic, true);
  EXPECT_STREQ(alone.kind(), "dense");
  EXPECT_STREQ(shared.kind(), "lines");
  Event* line = shared.allocate(16);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(line) % 64, 0u);
  alone.adapt(100'000);
  shared.adapt(100'000);
  EXPECT_STREQ(alone.kind(), "dense");
  EXPECT_STREQ(shared.kind(), "dense and lines");
  Event* dense = shared.allocate(16);
  EXPECT_EQ(shared.held(), 64 + 16);
  shared.release(line, 16);  // as it was allocated, whatever is chosen now
  shared.release(dense, 16);
  EXPECT_EQ(shared.held(), 0);
}

TEST(EventMemory, OfManyEventsNoneLiesAcrossTheEndOfALine) {
  for (bool shared : {false, true}) {
    EventMemory memory(Allocator::hmalloc, Blocks::automatic, shared);
    memory.adapt(1'000'000);
    EXPECT_STREQ(memory.kind(), "dense and lines");
    for (std::size_t size : {24, 32, 40, 48, 64}) {
      std::vector<Event*> events;
      for (int i = 0; i < 100; ++i) {
        events.push_back(memory.allocate(size));
        EXPECT_LE(reinterpret_cast<std::uintptr_t>(events.back()) % 64 + size, 64u) << size;
      }
      for (Event* event : events) memory.release(event, size);
    }
    EXPECT_EQ(memory.held(), 0);
  }
}

}  // namespace
}  // namespace pdes

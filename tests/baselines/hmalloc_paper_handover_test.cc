// Blocks that go from one thread to another.  Made for ThreadSanitizer: between owner and receiver there is nothing but
// the hand-over itself, so that the way back is ordered by the flag or not at all.
#include <atomic>

#include "hmalloc_paper_support.h"

using namespace hm;
using namespace hm::hmalloc_paper;
using namespace hm::hmalloc_paper::test;

namespace {

constexpr size_t kMessages = kThreadSanitizer ? 40'000 : 200'000;
constexpr size_t kLead = 3000;  // of a sender; fewer than the blocks of 1000 bytes in a superblock of 4 MB

struct Message {
  uint64_t number;
  uint64_t of_number;  // both change while the block has an owner
};

// What the two threads see of each other: slots that are written once, and a count that orders nothing.
struct Way {
  std::vector<std::atomic<Message*>> slots = std::vector<std::atomic<Message*>>(kMessages);
  std::atomic<size_t> received{0};

  void send(size_t number, size_t size) {
    while (number > received.load(std::memory_order_relaxed) + kLead) std::this_thread::yield();
    auto* message = static_cast<Message*>(hmp_shared_alloc(size));
    message->number = number;
    message->of_number = ~number;
    slots[number].store(message, std::memory_order_release);
  }
  bool receive(size_t number) {
    Message* message;
    while ((message = slots[number].load(std::memory_order_acquire)) == nullptr) std::this_thread::yield();
    bool sound = message->number == number && message->of_number == ~number;
    message->number = message->of_number = 0;  // a block that is handed out twice shows
    hmp_shared_free(message);
    received.store(number + 1, std::memory_order_relaxed);
    return sound;
  }
};

}  // namespace

TEST(PaperHandOver, TheOwnerReusesWhatAnotherFreed) {
  Way way;
  uint64_t superblocks = 0;
  std::thread owner([&] {
    for (size_t i = 0; i < kMessages; ++i) way.send(i, 1000);
    superblocks = local_heap()->counts.superblocks_4m.read();
  });
  size_t wrong = 0;
  for (size_t i = 0; i < kMessages; ++i) wrong += !way.receive(i);
  owner.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_LT(superblocks, kMessages * kKiB / (4 * kMiB) / 2) << "as if nothing came back";
  EXPECT_TRUE(is_valid());
}

// A thread's blocks outlive it, are freed by others, and are the next one's to use.
TEST(PaperHandOver, SuccessorsUseWhatOthersFreedOfTheDeads) {
  constexpr size_t kGenerations = 20;
  Way way;
  std::thread receiver([&] {
    for (size_t i = 0; i < kMessages; ++i) ASSERT_TRUE(way.receive(i)) << i;
  });
  for (size_t g = 0; g < kGenerations; ++g)
    on_thread([&] {
      for (size_t i = kMessages / kGenerations * g; i < kMessages / kGenerations * (g + 1); ++i) way.send(i, 500);
    });
  receiver.join();
  EXPECT_LE(registry.heaps, 2u);
  EXPECT_TRUE(is_valid());
}

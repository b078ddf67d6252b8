// What is true of every baseline, and what its structures and its account say to that.  The malloc family that the
// contract makes of a few functions is tests/conformance.
#include "baselines/contract.h"

#include <utility>

#include "contract_support.h"

using namespace contract;

namespace {

char* again(void* block, size_t size) { return static_cast<char*>(hm::reallocate(block, size, "realloc")); }

void expect_no_memory(const std::function<void*()>& call) {
  errno = 0;
  EXPECT_EQ(call(), nullptr);
  EXPECT_EQ(errno, ENOMEM);
}

}  // namespace

TEST(Contract, ErrorsSetErrnoAndLeaveTheBlock) {
  char* block = get(100);
  block[99] = 'z';
  for (size_t size : {SIZE_MAX, size_t{PTRDIFF_MAX}, size_t{PTRDIFF_MAX} + 1, SIZE_MAX - 15, SIZE_MAX - 71,
                      size_t{PTRDIFF_MAX} / 2, size_t{1} << 48}) {
    expect_no_memory([=] { return hm::allocate(size); });
    expect_no_memory([=] { return again(block, size); });
    for (size_t alignment : {size_t{16}, size_t{64}, size_t{4096}, size_t{1} << 40, size_t{1} << 63})
      expect_no_memory([=] { return hm::allocate_aligned(alignment, size); });
  }
  expect_no_memory([] { return hm::allocate_aligned(size_t{1} << 62, 1); });
  expect_no_memory([] { return hm::allocate_zeroed(size_t{1} << 33, size_t{1} << 33); });
  EXPECT_EQ(block[99], 'z');
  EXPECT_TRUE(baseline::is_valid());
}

TEST(Contract, ReallocMovesOnlyIfItPays) {
  char* block = get(1024);
  size_t all = usable(block);
  EXPECT_EQ(again(block, all - 24), block);
  EXPECT_EQ(again(block, all / 2), block) << "half of it is not worth a copy";
  EXPECT_NE(again(block, 300), block);
  char* small = get(16);
  EXPECT_TRUE(usable(small) > 32 || again(small, 1) == small) << "a granule is not worth it";
}

TEST(Contract, EveryAlignmentWithEverySize) {
  std::vector<char*> blocks;
  for (size_t alignment = 16; alignment <= 64 * kMiB; alignment *= 2)
    for (size_t size : {size_t{1}, size_t{100}, size_t{300}, size_t{1100}, size_t{5000}, size_t{9000}, size_t{30000},
                        size_t{70000}, 3 * kMiB}) {
      auto* block = static_cast<char*>(hm::allocate_aligned(alignment, size));
      ASSERT_NE(block, nullptr);
      ASSERT_EQ(address_of(block) % alignment, 0u) << size;
      ASSERT_GE(usable(block), size);
      memset(block, static_cast<char>(blocks.size()), usable(block));
      blocks.push_back(block);
      EXPECT_TRUE(baseline::is_valid()) << alignment << " " << size;
    }
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_TRUE(holds_only(blocks[i], usable(blocks[i]), static_cast<char>(i))) << i;
    give(blocks[i]);
  }
  expect_nothing_left();
}

TEST(Contract, WhatIsFreedIsUsedAgain) {
  for (size_t size : {size_t{100}, size_t{40000}, 5 * kMiB}) {
    give(get(size));
    size_t mapped = hm::usage().mapped;
    for (int i = 0; i < 1000; ++i) give(get(size));
    EXPECT_EQ(hm::usage().mapped, mapped) << size;
  }
}

// The program orders nothing between a receiver's free and the sender's next use of the block: the allocator must, and
// ThreadSanitizer sees whether it does.
TEST(Contract, TheWayBackToTheSenderIsOrdered) {
  constexpr size_t kMessages = 40'000, kLead = 3000;
  std::vector<std::atomic<size_t*>> slots(kMessages);
  std::atomic<size_t> received{0};
  std::thread sender([&] {
    for (size_t i = 0; i < kMessages; ++i) {
      while (i > received.load(std::memory_order_relaxed) + kLead) std::this_thread::yield();
      auto* message = reinterpret_cast<size_t*>(get(1000));
      *message = i;
      slots[i].store(message, std::memory_order_release);
    }
  });
  size_t wrong = 0;
  for (size_t i = 0; i < kMessages; ++i) {
    size_t* message;
    while ((message = slots[i].load(std::memory_order_acquire)) == nullptr) std::this_thread::yield();
    wrong += std::exchange(*message, ~i) != i;
    give(message);
    received.store(i + 1, std::memory_order_relaxed);
  }
  sender.join();
  EXPECT_EQ(wrong, 0u) << "a block was handed out twice";
  expect_nothing_left();
}

// In the child are the blocks of all threads and the threads of none; what it finds is sound.  Large blocks, which some
// give back outside their locks, are for the stress.
TEST(Contract, TheChildOfAForkGoesOn) {
  if (kThreadSanitizer) GTEST_SKIP() << "its run-time does not survive a fork beside threads";
  std::atomic<bool> done{false};
  std::atomic<char*> theirs[3]{};
  std::vector<std::thread> threads;
  for (auto& block : theirs)
    threads.emplace_back([&] {
      block = get(500);
      block.notify_one();
      for (size_t i = 1; !done; i = i * 5 % 4001) churn(i % 100 + 1, i);
    });
  for (auto& block : theirs) block.wait(nullptr);
  for (int i = 0; i < 50 && !HasFailure(); ++i)
    EXPECT_EQ(status_of_child([&] {
                for (auto& block : theirs) give(block);
                churn(100, 500);
                if (kThreadsInChild) on_thread([] { churn(100, 500); });
                return kPaper || baseline::is_valid();
              }),
              0)
        << i;
  done = true;
  for (std::thread& thread : threads) thread.join();
  for (auto& block : theirs) give(block);
  expect_nothing_left();
}

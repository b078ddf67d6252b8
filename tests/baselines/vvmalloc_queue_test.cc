// The central queue, mutex or lock-free; and the two kinds of lock.
#include "baselines/vvmalloc/central_queue.h"

#include <memory>

#include "contract_support.h"

using namespace hm;
using namespace hm::vvmalloc;

namespace {

// Arenas on memory of the test's.
class Queue : public testing::Test {
 protected:
  Arena arena(size_t bytes) {
    memory_.push_back(std::make_unique<char[]>(bytes + 32));
    uintptr_t start = align_up(address_of(memory_.back().get()), 16) + sizeof(Tag);
    Arena arena{reinterpret_cast<char*>(start), bytes};
    arena.write_prologue();
    arena.write_epilogue();
    arena.fill(kNobody);
    return arena;
  }

  std::vector<std::unique_ptr<char[]>> memory_;
  CentralQueue queue_;
};

}  // namespace

TEST_F(Queue, FirstInFirstOut) {
  EXPECT_FALSE(queue_.dequeue(1));
  EXPECT_FALSE(queue_.dequeue(kArena * 1000));
  std::vector<Arena> arenas;
  for (int i = 0; i < 100; ++i) arenas.push_back(arena(kArena));
  for (const Arena& in : arenas) EXPECT_TRUE(queue_.enqueue(in));
  EXPECT_TRUE(queue_.is_valid(0));
  for (const Arena& in : arenas) {
    Arena out = queue_.dequeue(kArena);
    EXPECT_EQ(out.start, in.start);
    EXPECT_EQ(out.bytes, in.bytes);
  }
  EXPECT_FALSE(queue_.dequeue(1));
}

TEST_F(Queue, SegregatedBySize) {
  Arena large = arena(4 * kArena), small = arena(kArena), odd = arena(2 * kArena - 48);
  for (const Arena& in : {large, small, odd}) EXPECT_TRUE(queue_.enqueue(in));
  EXPECT_EQ(queue_.dequeue(kArena + 1).start, odd.start);
  EXPECT_EQ(queue_.dequeue(kArena + 1).start, large.start);
  EXPECT_FALSE(queue_.dequeue(kArena + 1)) << "never one that is too small";
  EXPECT_EQ(queue_.dequeue(kArena).start, small.start);
}

TEST_F(Queue, RoundedSizesAreFound) {
  for (size_t bytes = kArena; bytes < 20 * kArena; bytes += kArena / 5 / 16 * 16) {
    EXPECT_GE(CentralQueue::rounded(bytes), bytes);
    EXPECT_LE(CentralQueue::rounded(bytes), bytes + bytes / 4 + kArena / 4);
    EXPECT_TRUE(queue_.enqueue(arena(CentralQueue::rounded(bytes))));
    EXPECT_TRUE(queue_.dequeue(bytes)) << bytes;
  }
}

// Each arena is one thread's at a time, and what the last one wrote there is seen by the next.
TEST_F(Queue, ManyThreads) {
  constexpr uint64_t kThreads = 4, kRounds = 20000;
  auto number = [](const Arena& arena) {
    return reinterpret_cast<uint64_t*>(arena.inside()->payload()) + 8;  // behind the queue's own links
  };
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(queue_.enqueue(arena(kArena)));
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (uint64_t i = 0; i < kRounds;) {
        Arena arena = queue_.dequeue(kArena);
        if (!arena) continue;
        ++*number(arena);
        arena.fill(kNobody);
        ASSERT_TRUE(queue_.enqueue(arena));
        ++i;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(queue_.is_valid(0));
  uint64_t sum = 0;
  while (Arena arena = queue_.dequeue(kArena)) sum += *number(arena);
  EXPECT_EQ(sum, kThreads * kRounds);
  EXPECT_EQ(queue_.lock() != nullptr, kApproach == 2) << "a mutex, then none";
}

template <class L>
class Locks : public testing::Test {};
using KindsOfLock = testing::Types<SpinLock, Mutex>;
TYPED_TEST_SUITE(Locks, KindsOfLock);

TYPED_TEST(Locks, OneAtATime) {
  TypeParam lock;
  uint64_t plain = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 20000; ++i) {
        Holding held(lock);
        ++plain;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(plain, 80000u);
}

TYPED_TEST(Locks, WaitingIsMeasured) {
  TypeParam lock;
  ASSERT_TRUE(lock.lock());
  EXPECT_FALSE(lock.lock()) << "a holder is told so, and does not wait for itself";
  EXPECT_EQ(lock.waited_ns(), 0u);
  lock.unlock();
  // A busy machine may let the thread come when the lock is free again: then another one is kept waiting.
  uint64_t waited = 0;
  for (int i = 0; i < 200 && waited < 10'000'000u; ++i) {
    ASSERT_TRUE(lock.lock());
    std::thread waits([&] { Holding held(lock); });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    lock.unlock();
    waits.join();
    Holding held(lock);
    waited = lock.waited_ns();
  }
  EXPECT_GE(waited, 10'000'000u);
}

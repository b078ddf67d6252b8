// The lock-free queue under many threads, with so few nodes that each is used again at once; and after fork.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <thread>
#include <utility>
#include <vector>

#include "baselines/vvmalloc/ms_queue.h"

namespace hm::vvmalloc {
namespace {

template <uint32_t kNodes>
struct Tiny : QueueSetting {
  static constexpr uint32_t kFirstNodes = 2;
  static constexpr uint32_t kMaxNodes = kNodes;
};

constexpr size_t kThreads = 3, kEach = kThreadSanitizer ? 60'000 : 200'000;

void* token(size_t producer, size_t n) { return reinterpret_cast<void*>(producer << 32 | n); }
size_t producer_of(void* token) { return address_of(token) >> 32; }
size_t number_of(void* token) { return address_of(token) & UINT32_MAX; }

// What one consumer saw of each producer.
struct Seen {
  std::array<std::vector<size_t>, kThreads + 1> from;
};

template <class Q>
void consume(Q& queue, std::atomic<size_t>& left, Seen& seen) {
  while (left.load() > 0) {
    size_t bytes = 0;
    void* got = queue.dequeue(&bytes);
    if (got == nullptr) {
      std::this_thread::yield();
      continue;
    }
    left.fetch_sub(1);
    EXPECT_EQ(bytes, number_of(got) * 3) << "the size of another arena";
    seen.from[producer_of(got)].push_back(number_of(got));
  }
}

// Each element exactly once; a consumer sees those of one producer in their order.
void check(const std::array<Seen, kThreads>& consumers) {
  for (size_t p = 1; p <= kThreads; ++p) {
    std::vector<int> times(kEach + 1);
    for (const Seen& seen : consumers)
      for (size_t last = 0; size_t n : seen.from[p]) {
        ++times[n];
        ASSERT_LT(std::exchange(last, n), n) << "out of order";
      }
    for (size_t n = 1; n <= kEach; ++n) ASSERT_EQ(times[n], 1) << "producer " << p << ", element " << n;
  }
}

template <uint32_t kNodes>
void exactly_once() {
  static constinit MsQueueOf<Tiny<kNodes>> queue;
  std::atomic<size_t> left = kThreads * kEach;
  std::array<Seen, kThreads> seen;
  std::vector<std::thread> threads;
  for (size_t p = 1; p <= kThreads; ++p)
    threads.emplace_back([p] {
      for (size_t n = 1; n <= kEach; ++n)
        while (!queue.enqueue(token(p, n), n * 3)) std::this_thread::yield();
    });
  for (Seen& mine : seen) threads.emplace_back([&] { consume(queue, left, mine); });
  for (std::thread& thread : threads) thread.join();
  check(seen);
  EXPECT_TRUE(queue.is_valid());
  size_t bytes;
  EXPECT_EQ(queue.dequeue(&bytes), nullptr);
}
TEST(MsQueueStress, ThreeNodes) { exactly_once<3>(); }
TEST(MsQueueStress, EightNodes) { exactly_once<8>(); }

// Threads that need the same new chunk at the same time: no node is lost, and none is given twice.
TEST(MsQueueStress, NewNodesForEverybody) {
  constexpr size_t kNodes = 500;
  for (int round = 0; round < 200; ++round) {
    MsQueueOf<Tiny<kNodes>> queue;
    std::atomic<size_t> ready{0}, given{0};
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; ++t)
      threads.emplace_back([&] {
        ready.fetch_add(1);
        while (ready.load() < kThreads) std::this_thread::yield();
        while (queue.enqueue(&queue, 1)) given.fetch_add(1);
      });
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(queue.is_valid());
    size_t taken = 0, bytes;
    while (queue.dequeue(&bytes) != nullptr) ++taken;
    ASSERT_EQ(taken, kNodes - 1) << "the dummy is a node too";
    ASSERT_EQ(given.load(), taken);
    ASSERT_TRUE(queue.is_valid());
  }
}

// As VVMalloc uses it: who dequeues an arena writes into it, and what the last holder wrote is there.
TEST(MsQueueStress, AnArenaIsHandedOverWhole) {
  static constinit MsQueue queue;
  struct Arena {
    size_t uses = 0;  // plain: ThreadSanitizer sees whether the queue orders the accesses
  };
  static std::array<Arena, 4> arenas;
  for (Arena& arena : arenas) ASSERT_TRUE(queue.enqueue(&arena, sizeof arena));
  std::atomic<size_t> uses{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      size_t mine = 0, bytes;
      for (size_t i = 0; i < kEach; ++i)
        if (auto* arena = static_cast<Arena*>(queue.dequeue(&bytes))) {
          ++arena->uses;
          ++mine;
          ASSERT_TRUE(queue.enqueue(arena, bytes));
        }
      uses += mine;
    });
  for (std::thread& thread : threads) thread.join();
  size_t sum = 0;
  for (Arena& arena : arenas) sum += arena.uses;
  EXPECT_EQ(sum, uses.load());
  EXPECT_TRUE(queue.is_valid());
}

// In the child, whose other threads are gone: everything still there at most once, and the queue goes on.  The exit
// status says what was wrong.
template <class Q>
int child(Q& queue, size_t tokens) {
  if (!queue.is_valid(kThreads)) return 1;
  size_t bytes, found = 0;
  std::array<bool, 64> seen{};
  while (void* got = queue.dequeue(&bytes)) {
    size_t n = number_of(got);
    if (seen[n] || ++found > tokens) return 2;
    seen[n] = true;
  }
  if (found + kThreads < tokens) return 3;  // each thread held one at most
  for (size_t n = 1; n <= 5; ++n)
    if (!queue.enqueue(token(1, n), n)) return 4;
  for (size_t n = 1; n <= 5; ++n)
    if (queue.dequeue(&bytes) != token(1, n)) return 5;
  return queue.is_valid(kThreads) ? 0 : 6;
}

TEST(MsQueueStress, GoesOnInTheChildOfAFork) {
  constexpr size_t kTokens = 6;
  static constinit MsQueueOf<Tiny<64>> queue;  // the nodes on other pages than the queue itself
  for (size_t n = 1; n <= kTokens; ++n) ASSERT_TRUE(queue.enqueue(token(1, n), n));
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      size_t bytes;
      while (!stop.load())
        if (void* got = queue.dequeue(&bytes)) queue.enqueue(got, bytes);  // there are nodes enough
    });
  for (int round = 0; round < 100; ++round) {
    pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) _exit(child(queue, kTokens));
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0) << "round " << round << ", check " << WEXITSTATUS(status);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(queue.is_valid());
}

}  // namespace
}  // namespace hm::vvmalloc

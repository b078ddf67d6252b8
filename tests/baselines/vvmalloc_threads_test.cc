// Real threads (Approaches 2 to 4): whose list is whose, threads that end, blocks from hand to hand, fork.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "baselines/vvmalloc/thread_lists.h"
#include "baselines/vvmalloc/vvmalloc.h"

using namespace hm;
using namespace hm::vvmalloc;

namespace {

template <class Body>
void on_thread(Body body) {
  std::thread(body).join();
}

ListId owner_of(void* payload) { return Block::of(payload)->header.owner(); }

size_t lists() {
  size_t count = 0;
  thread_lists.for_each([&](ThreadList&) { ++count; });
  return count;
}

}  // namespace

TEST(Threads, EachHasAnArenaOfItsOwn) {
  void* mine = allocate(100);
  std::atomic<void*> theirs{nullptr};
  on_thread([&] { theirs = allocate(100); });
  EXPECT_NE(owner_of(mine), owner_of(theirs));
  EXPECT_GT(address_of(theirs) > address_of(mine) ? address_of(theirs) - address_of(mine)
                                                  : address_of(mine) - address_of(theirs), kArena / 2);
  EXPECT_NE(owner_of(mine), kNobody);
  deallocate(mine, "test");
  deallocate(theirs, "test");
  EXPECT_TRUE(is_valid());
}

TEST(Threads, AnEndedThreadsListIsInherited) {
  void* block = nullptr;
  size_t mapped = 0, count = 0;
  on_thread([&] {
    block = allocate(100);
    for (int i = 0; i < 100; ++i) deallocate(allocate(1000), "test");
    mapped = usage().mapped;
    count = lists();
  });
  ListId owner = owner_of(block);
  for (int i = 0; i < 50; ++i)
    on_thread([&] {
      void* again = allocate(100);
      EXPECT_EQ(owner_of(again), owner);
      deallocate(block, "test");  // the heir is the owner: it merges
      EXPECT_EQ(Block::of(block)->header.state(), State::kFree);
      block = again;
    });
  EXPECT_EQ(usage().mapped, mapped);
  EXPECT_EQ(lists(), count);
  deallocate(block, "test");
  EXPECT_TRUE(is_valid());
}

TEST(Threads, ALateDestructorBorrowsAListThatWaits) {
  // Made after the allocator's key, so its destructor runs later, three times more.
  deallocate(allocate(1), "test");
  static pthread_key_t key;
  static std::atomic<int> runs{0};
  ASSERT_EQ(pthread_key_create(&key, [](void* block) {
    deallocate(block, "test");
    void* other = allocate(3000);
    EXPECT_EQ(my_list, nullptr);
    if (++runs < 3) pthread_setspecific(key, other);
    else deallocate(other, "test");
  }), 0);
  size_t before = usage().allocated, count = 0;
  for (int i = 0; i < 20; ++i) {
    runs = 0;
    on_thread([&] { pthread_setspecific(key, allocate(200)); });
    EXPECT_EQ(runs, 3);
    if (i == 0) count = lists();
  }
  EXPECT_EQ(usage().allocated, before);
  EXPECT_EQ(lists(), count);
  EXPECT_TRUE(is_valid());
}

TEST(Threads, AQueuedArenaServesAnotherThread) {
  constexpr size_t kSize = kArena - 4096;
  std::vector<void*> blocks(10);
  for (void*& block : blocks) block = allocate(kSize);
  Counters before = counters();
  for (void* block : blocks) deallocate(block, "test");
  EXPECT_GE(counters().enqueues, before.enqueues + 9);
  on_thread([&] {
    for (int i = 0; i < 9; ++i) deallocate(allocate(kSize), "test");
    std::vector<void*> theirs(9);
    for (void*& block : theirs) block = allocate(kSize);
    for (void* block : theirs) deallocate(block, "test");
  });
  Counters after = counters();
  EXPECT_GT(after.dequeues, before.dequeues);
  EXPECT_EQ(after.extensions, before.extensions);
}

// The report is silent on what this costs: who allocates never gets back what another thread frees.
TEST(Threads, AProducersMemoryStaysWithTheConsumer) {
  std::vector<void*> blocks(1000);
  auto produce = [&] { for (void*& block : blocks) block = allocate(1000); };
  auto consume = [&] { for (void* block : blocks) deallocate(block, "test"); };
  size_t mapped = 0;
  std::atomic<int> turn{0};
  std::thread consumer([&] {
    for (int i = 0; i < 20; ++i) {
      while (turn.load() != 2 * i + 1) std::this_thread::yield();
      consume();
      turn = 2 * i + 2;
    }
  });
  for (int i = 0; i < 20; ++i) {
    produce();
    if (i == 0) mapped = usage().mapped;
    turn = 2 * i + 1;
    while (turn.load() != 2 * i + 2) std::this_thread::yield();
  }
  consumer.join();
  EXPECT_GT(usage().mapped, mapped + 15 * 1000 * 1000) << "the blowup is gone: say so in the README";
  EXPECT_EQ(usage().allocated, 0u);
  EXPECT_TRUE(is_valid());
}

// Blocks wander through a table; each is one holder's at a time.
TEST(Threads, NoBlockTwice) {
  struct Held {
    uint64_t stamp;
    size_t size;
  };
  constexpr size_t kPlaces = 512;
  static std::array<std::atomic<Held*>, kPlaces> table{};
  auto check_and_free = [](Held* held) {
    auto* last = reinterpret_cast<uint64_t*>(reinterpret_cast<char*>(held) + held->size) - 1;
    EXPECT_EQ(*last, held->stamp);
    *last = held->stamp = 0;
    deallocate(held, "test");
  };
  auto wander = [&](uint64_t seed) {
    uint64_t random = seed * 0x9E3779B97F4A7C15 + 1;
    for (uint64_t i = 0; i < 20000; ++i) {
      random = random * 6364136223846793005 + 1442695040888963407;
      uint64_t dice = random >> 33;
      size_t size = 24 + (dice % 64 == 0 ? dice % (3 * kArena) : dice % 16 == 1 ? dice % 20000 : dice % 600) / 8 * 8;
      void* block = dice % 32 == 2 ? allocate_aligned(64 << dice % 5, size) : allocate(size);
      auto* held = static_cast<Held*>(block);
      *held = {random, size};
      reinterpret_cast<uint64_t*>(static_cast<char*>(block) + size)[-1] = random;
      held = table[dice / 7 % kPlaces].exchange(held);
      if (held != nullptr) check_and_free(held);
    }
  };
  for (uint64_t round = 0; round < 3; ++round) {
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 4; ++t) threads.emplace_back(wander, round * 4 + t + 1);
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(is_valid());
  }
  for (auto& place : table)
    if (Held* held = place.exchange(nullptr)) check_and_free(held);
  EXPECT_TRUE(is_valid());
  EXPECT_EQ(usage().allocated, 0u);
}

// Between before_fork() and after it nobody changes what all threads share.
TEST(Threads, AForkHoldsEverything) {
  std::atomic<int> ready{0}, passed{0};
  std::atomic<bool> go{false};
  auto waits = [&](auto body) {
    return std::thread([&, body] {
      void* large = allocate(8 * kArena);  // now it has a list
      ++ready;
      while (!go) std::this_thread::yield();
      body(large);
      ++passed;
    });
  };
  std::thread extends = waits([](void* large) { deallocate(allocate(100 * kMiB), "test"); deallocate(large, "test"); });
  std::thread enqueues = waits([](void* large) { deallocate(large, "test"); });
  while (ready != 2) std::this_thread::yield();
  before_fork();
  go = true;
  std::thread begins([&] { deallocate(allocate(100), "test"); ++passed; });
  std::thread counts([&] { lists(); ++passed; });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(passed, kApproach == 2 ? 0 : 1) << "the lock-free queue holds nobody up";
  after_fork_in_parent();
  for (std::thread* thread : {&extends, &enqueues, &begins, &counts}) thread->join();
  EXPECT_TRUE(is_valid());
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)  // they do not survive a fork beside threads
TEST(Threads, AChildGoesOnWithoutTheListsOfOthers) {
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  std::atomic<bool> done{false};
  std::atomic<int> started{0};
  std::atomic<void*> theirs{nullptr};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      theirs = allocate(500);
      ++started;
      for (size_t i = 1; !done; i = i * 5 % 200003) deallocate(allocate(i), "test");
    });
  while (started != 3) std::this_thread::yield();
  void* mine = allocate(500);
  for (int i = 0; i < 30; ++i) {
    pid_t child = fork();
    if (child == 0) {
      alarm(10);
      ListId owner = owner_of(mine);
      deallocate(theirs, "test");
      deallocate(mine, "test");
      for (size_t n = 1; n < 300000; n = n * 3 / 2 + 1) deallocate(allocate(n), "test");
      if (owner_of(allocate(100)) != owner) _exit(1);
      std::thread([] { deallocate(allocate(100), "test"); }).join();
      size_t lost = 0;
      thread_lists.for_each([&](ThreadList& list) { lost += list.lost; });
      _exit(lost != 3 ? 2 : is_valid() ? 0 : 3);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  deallocate(mine, "test");
}
#endif

// Threads that work at once, hand blocks on, end, and are forked.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <random>

#include "ar_malloc_support.h"

using namespace hm;
using namespace hm::ar_malloc;

namespace {

void fill(void* block, size_t size, unsigned mark) { memset(block, static_cast<int>(mark & 0xff), size); }
bool is_filled(const void* block, size_t size, unsigned mark) {
  for (size_t i = 0; i < size; ++i)
    if (static_cast<const unsigned char*>(block)[i] != (mark & 0xff)) return false;
  return true;
}

// Where threads leave blocks for each other.
struct Exchange {
  struct Left {
    void* block;
    size_t size;
    unsigned mark;
  };
  std::mutex mutex;
  std::vector<Left> left;

  void put(Left one) {
    std::lock_guard guard(mutex);
    left.push_back(one);
  }
  Left take(size_t random) {
    std::lock_guard guard(mutex);
    if (left.empty()) return {nullptr, 0, 0};
    std::swap(left[random % left.size()], left.back());
    Left one = left.back();
    left.pop_back();
    return one;
  }
};

void trade(Exchange& exchange, unsigned seed, int rounds) {
  std::mt19937 random(seed);
  for (int i = 0; i < rounds; ++i) {
    size_t size = 1 + random() % (i % 50 == 0 ? 20000 : 1024);
    void* block = allocate(size);
    fill(block, size, seed + static_cast<unsigned>(i));
    exchange.put({block, size, seed + static_cast<unsigned>(i)});
    if (i % 3 == 0) continue;
    for (int n = 0; n < 2; ++n) {
      Exchange::Left one = exchange.take(random());
      if (one.block == nullptr) break;
      ASSERT_TRUE(is_filled(one.block, one.size, one.mark));
      ar_malloc::free(one.block);
    }
  }
}

// Without the process's own malloc, which a sanitizer does not hold still around a fork.
template <size_t kCount>
void churn(size_t size) {
  void* blocks[kCount];
  for (void*& block : blocks) block = allocate(size);
  for (void* block : blocks) ar_malloc::free(block);
}

pthread_key_t late_key;
constexpr int kLateRounds = 3;
thread_local int late_rounds = 0;
std::atomic<int> late_calls{0};

// A destructor that runs after the cache is gone, and again.
void late(void* block) {
  ++late_calls;
  ar_malloc::free(block);
  EXPECT_EQ(list_of(100).count(), 0u);
  void* fresh = allocate(100);
  fill(fresh, 100, 1);
  EXPECT_EQ(list_of(100).count(), 0u) << "a block alone, and no cache that nobody would empty";
  if (++late_rounds < kLateRounds) pthread_setspecific(late_key, fresh);
  else ar_malloc::free(fresh);
}

}  // namespace

// Also for ThreadSanitizer: the lock and the caches order whatever the threads write to the blocks and to the slabs.
TEST(Threads, HandBlocksOn) {
  start_with("2");
  Exchange exchange;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) threads.emplace_back([&, t] { trade(exchange, 1000 * t, 4000); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(is_valid());
  for (Exchange::Left& one : exchange.left) {
    ASSERT_TRUE(is_filled(one.block, one.size, one.mark));
    ar_malloc::free(one.block);
  }
  EXPECT_TRUE(is_valid());
  EXPECT_EQ(usage().allocated, 0u);
}

TEST(Threads, TheAccountIsReadWhileTheyWork) {
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      while (!done) free_all(allocate_many(200, 50));
    });
  for (int i = 0; i < 200; ++i) EXPECT_LE(usage().allocated + usage().cached, 4 * kMiB);
  done = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(Threads, NoBlockIsWithTwoOfThem) {
  start_with("3");
  std::vector<std::vector<void*>> of(4);
  std::vector<std::thread> threads;
  for (auto& mine : of)
    threads.emplace_back([&mine] {
      for (int round = 0; round < 20; ++round) {
        std::vector<void*> blocks = allocate_many(300, 48);
        mine.insert(mine.end(), blocks.begin(), blocks.begin() + 100);
        free_all({blocks.begin() + 100, blocks.end()});
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::set<void*> all;
  for (auto& blocks : of) all.insert(blocks.begin(), blocks.end());
  EXPECT_EQ(all.size(), 4u * 20 * 100);
  EXPECT_TRUE(is_valid());
}

TEST(Threads, GiveTheirCacheBackWhenTheyEnd) {
  void* left = nullptr;
  on_thread([&] {
    left = allocate(100);
    free_all(allocate_many(1000, 300));
    EXPECT_GT(usage().cached, 0u);
  });
  EXPECT_EQ(usage().cached, 0u);
  EXPECT_EQ(counted().bytes_out, 112u) << "the one block that it left";
  EXPECT_EQ(cache_totals().threads, 1u);
  ar_malloc::free(left);
  EXPECT_TRUE(is_valid());
}

TEST(Threads, LateDestructorsAreServedWithoutACache) {
  on_thread([] { ar_malloc::free(allocate(1)); });  // our key first: its destructor runs first
  ASSERT_EQ(pthread_key_create(&late_key, late), 0);
  on_thread([] { pthread_setspecific(late_key, allocate(100)); });
  EXPECT_EQ(late_calls, kLateRounds);
  EXPECT_EQ(usage().cached, 0u);
  EXPECT_EQ(counted().bytes_out, 0u);
  EXPECT_TRUE(is_valid());
}

TEST(Threads, OneThatOnlyFreesHasACacheToo) {
  std::vector<void*> blocks = allocate_many(10, 100);
  on_thread([&] {
    free_all(blocks);
    EXPECT_EQ(list_of(100).count(), 10u);
  });
  EXPECT_EQ(counted().back, 10u);
}

TEST(Threads, DoWithoutACacheWhenNoKeyIsLeft) {
  pthread_key_t key;
  while (pthread_key_create(&key, nullptr) == 0) continue;
  free_all(allocate_many(100, 100));
  EXPECT_EQ(usage().cached, 0u);
  EXPECT_EQ(counted().out, 100u);
  EXPECT_EQ(counted().bytes_out, 0u);
}

// As in a signal handler that interrupted a malloc: the lock is held by this very thread, in the child too.
TEST(Fork, WorksWithinALock) {
  ar_malloc::free(allocate(100));
  LockGuard interrupted(arenas[0].lock());
  before_fork();
  pid_t child = fork();
  if (child == 0) {
    alarm(10);
    after_fork_in_child();
    churn<100>(5000);
    _exit(arenas[0].lock().lock() ? 1 : 0);
  }
  after_fork_in_parent();
  EXPECT_FALSE(arenas[0].lock().lock()) << "still held";
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// Beside a thread with a full cache, and threads at work.
TEST(Fork, TheChildHasItsOwnCacheAlone) {
  if (kThreadSanitizer) GTEST_SKIP() << "its run-time does not survive a fork beside threads";
  std::atomic<bool> done{false}, ready{false};
  std::thread idle([&] {
    churn<50>(400);
    ready = true;
    while (!done) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  std::thread busy([&] {
    while (!done) churn<300>(40);
  });
  while (!ready) std::this_thread::yield();
  ar_malloc::free(allocate(700));
  for (int i = 0; i < 50; ++i) {
    before_fork();
    pid_t child = fork();
    if (child == 0) {
      alarm(10);
      after_fork_in_child();
      size_t cached = 0;
      for (size_t c = 0; c < kCachedClasses; ++c) cached += cache.lists[c].count() * size_of(ClassIndex(c));
      bool sound = usage().cached == cached && is_valid();
      on_thread([] { churn<500>(40); });
      _exit(sound && usage().cached == cached && is_valid() ? 0 : 1);
    }
    after_fork_in_parent();
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  done = true;
  idle.join();
  busy.join();
  EXPECT_TRUE(is_valid());
}

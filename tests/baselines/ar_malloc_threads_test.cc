// Threads that end, and forks beside them.
#include <pthread.h>

#include "ar_malloc_support.h"

using namespace hm;
using namespace hm::ar_malloc;

namespace {

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
  memset(fresh, 1, 100);
  EXPECT_EQ(list_of(100).count(), 0u) << "a block alone, and no cache that nobody would empty";
  if (++late_rounds < kLateRounds) pthread_setspecific(late_key, fresh);
  else ar_malloc::free(fresh);
}

}  // namespace

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

TEST(Fork, WorksWithinALock) {
  ar_malloc::free(allocate(100));
  contract::expect_fork_within(arenas[0].lock(), [] { churn<100>(5000); });
}

// Beside a thread with a full cache, and one at work.
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
  for (int i = 0; i < 50 && !HasFailure(); ++i)
    EXPECT_EQ(contract::status_of_child([] {
                size_t cached = 0;
                for (size_t c = 0; c < kCachedClasses; ++c) cached += cache.lists[c].count() * size_of(ClassIndex(c));
                bool sound = usage().cached == cached && is_valid();
                on_thread([] { churn<500>(40); });
                return sound && usage().cached == cached && is_valid();
              }),
              0);
  done = true;
  idle.join();
  busy.join();
  EXPECT_TRUE(is_valid());
}

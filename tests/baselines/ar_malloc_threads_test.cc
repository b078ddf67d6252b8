// Threads that end, and forks beside them.
#include <pthread.h>

#include "ar_malloc_support.h"

using namespace ar_malloc_test;

namespace {

pthread_key_t late_key;
constexpr int kLateRounds = 3;
thread_local int late_rounds = 0;
std::atomic<int> late_calls{0};

// A destructor that runs after the cache is gone, and again.
void late(void* block) {
  ++late_calls;
  give(block);
  void* fresh = memset(get(100), 1, 100);
  EXPECT_EQ(list_of(100).count(), 0u) << "a block alone, and no cache that nobody would empty";
  if (++late_rounds < kLateRounds) pthread_setspecific(late_key, fresh);
  else give(fresh);
}

void expect_only(size_t bytes) {
  EXPECT_EQ(ar_malloc::usage().cached, 0u);
  EXPECT_EQ(counted().bytes_out, bytes);
  EXPECT_TRUE(ar_malloc::is_valid());
}

}  // namespace

TEST(Threads, GiveTheirCacheBackWhenTheyEnd) {
  void* left = nullptr;
  on_thread([&] {
    left = get(100);
    give_all(get_many(1000, 300));
    EXPECT_GT(ar_malloc::usage().cached, 0u);
  });
  expect_only(112);
  on_thread([&] {
    give(left);
    EXPECT_EQ(list_of(100).count(), 1u) << "one that only frees has a cache too";
  });
  expect_only(0);
}

TEST(Threads, LateDestructorsAreServedWithoutACache) {
  on_thread([] { give(get(1)); });  // our key first: its destructor runs first
  ASSERT_EQ(pthread_key_create(&late_key, late), 0);
  on_thread([] { pthread_setspecific(late_key, get(100)); });
  EXPECT_EQ(late_calls, kLateRounds);
  expect_only(0);
}

TEST(Threads, DoWithoutACacheWhenNoKeyIsLeft) {
  pthread_key_t key;
  while (pthread_key_create(&key, nullptr) == 0) continue;
  give_all(get_many(100, 100));
  EXPECT_EQ(counted().out, 100u);
  expect_only(0);
}

TEST(Fork, WorksWithinALock) {
  give(get(100));
  expect_fork_within(arenas[0].lock(), [] { churn(100, 5000); });
}

TEST(Fork, TheChildHasItsOwnCacheAlone) {
  if (kThreadSanitizer) GTEST_SKIP() << "its run-time does not survive a fork beside threads";
  std::atomic<bool> ready{false}, done{false};
  std::thread other([&] {  // with a full cache
    churn(50, 400);
    ready = true;
    ready.notify_one();
    done.wait(false);
  });
  ready.wait(false);
  give(get(700));
  EXPECT_EQ(status_of_child([] {
              size_t cached = list_of(700).count() * size_of(class_of(700));
              return ar_malloc::usage().cached == cached && ar_malloc::is_valid();
            }),
            0);
  done = true;
  done.notify_one();
  other.join();
}

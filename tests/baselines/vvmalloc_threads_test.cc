// Real threads (Approaches 2 to 4): whose list is whose, threads that end, blocks from hand to hand, fork.
#include <pthread.h>

#include "baselines/vvmalloc/thread_lists.h"
#include "contract_support.h"

using namespace hm;
using namespace hm::vvmalloc;
using contract::expect_nothing_left, contract::get, contract::get_many, contract::give, contract::give_all,
    contract::on_thread;

namespace {

ListId owner_of(void* payload) { return Block::of(payload)->header.owner(); }

size_t lists() {
  size_t count = 0;
  thread_lists.for_each([&](ThreadList&) { ++count; });
  return count;
}

}  // namespace

TEST(Threads, AnEndedThreadsListIsInherited) {
  void* mine = get(100);
  void* block = nullptr;
  size_t mapped = 0, count = 0;
  on_thread([&] {
    block = get(100);
    EXPECT_NE(owner_of(block), owner_of(mine)) << "each has arenas of its own";
    mapped = usage().mapped;
    count = lists();
  });
  ListId owner = owner_of(block);
  for (int i = 0; i < 50; ++i)
    on_thread([&] {
      void* again = get(100);
      EXPECT_EQ(owner_of(again), owner);
      give(block);  // the heir is the owner: it merges
      EXPECT_EQ(Block::of(block)->header.state(), State::kFree);
      block = again;
    });
  EXPECT_EQ(usage().mapped, mapped);
  EXPECT_EQ(lists(), count);
  give_all({block, mine});
  expect_nothing_left();
}

TEST(Threads, ALateDestructorBorrowsAListThatWaits) {
  give(get(1));  // our key is made after the allocator's, so its destructor runs later, three times
  static pthread_key_t key;
  static std::atomic<int> runs{0};
  ASSERT_EQ(pthread_key_create(&key,
                               [](void* block) {
                                 give(block);
                                 void* other = get(3000);
                                 EXPECT_EQ(my_list, nullptr);
                                 if (++runs % 3 != 0) pthread_setspecific(key, other);
                                 else give(other);
                               }),
            0);
  on_thread([] { give(get(1)); });
  size_t count = lists();
  for (int i = 1; i <= 20; ++i) {
    on_thread([] { pthread_setspecific(key, get(200)); });
    EXPECT_EQ(runs, 3 * i);
  }
  EXPECT_EQ(lists(), count);
  expect_nothing_left();
}

TEST(Threads, AQueuedArenaServesAnotherThread) {
  constexpr size_t kSize = kArena - 4096;
  std::vector<void*> blocks = get_many(10, kSize);
  Counters before = counters();
  give_all(blocks);
  EXPECT_GE(counters().enqueues, before.enqueues + 9);
  on_thread([] { give_all(get_many(9, kSize)); });
  EXPECT_GE(counters().dequeues, before.dequeues + 9);
  EXPECT_EQ(counters().extensions, before.extensions);
}

// Between before_fork() and after it nobody changes what all threads share.
TEST(Threads, AForkHoldsEverything) {
  std::atomic<int> ready{0}, passed{0};
  std::atomic<bool> go{false};
  auto with_a_list = [&](auto body) {
    return std::thread([&, body] {
      void* large = get(8 * kArena);
      ++ready;
      while (!go) std::this_thread::yield();
      body(large);
      ++passed;
    });
  };
  std::thread extends = with_a_list([](void* large) { give_all({get(100 * kMiB), large}); });
  std::thread enqueues = with_a_list([](void* large) { give(large); });
  while (ready != 2) std::this_thread::yield();
  before_fork();
  go = true;
  std::thread begins([&] {
    give(get(100));
    ++passed;
  });
  std::thread counts([&] {
    lists();
    ++passed;
  });
  const int not_held_up = kApproach == 2 ? 0 : 1;
  const auto last = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (passed < not_held_up && std::chrono::steady_clock::now() < last) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(passed, not_held_up) << "the lock-free queue holds nobody up";
  after_fork_in_parent();
  for (std::thread* thread : {&extends, &enqueues, &begins, &counts}) thread->join();
  EXPECT_TRUE(is_valid());
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)  // they do not survive a fork beside threads
TEST(Threads, AChildGoesOnWithoutTheListsOfOthers) {
  void* mine = get(500);
  std::atomic<void*> theirs{nullptr};
  std::atomic<bool> done{false};
  std::thread other([&] {
    theirs = get(500);
    theirs.notify_one();
    done.wait(false);
  });
  theirs.wait(nullptr);
  EXPECT_EQ(contract::status_of_child([&] {
              ListId owner = owner_of(mine), lost_one = owner_of(theirs);
              give_all({theirs, mine});
              bool kept = owner_of(get(100)) == owner, inherited = false;
              on_thread([&] { inherited = owner_of(get(100)) == lost_one; });
              size_t lost = 0;
              thread_lists.for_each([&](ThreadList& list) { lost += list.lost; });
              return kept && !inherited && lost == 1 && is_valid();
            }),
            0);
  done = true;
  done.notify_one();
  other.join();
}
#endif

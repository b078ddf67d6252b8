#include "threads/registry.h"

#include <pthread.h>

#include <atomic>
#include <barrier>

#include "support.h"

using namespace hm;
using namespace hm::test;

namespace {

size_t heaps() {
  size_t n = 0;
  registry.for_each([&](ThreadHeap&) { ++n; });
  return n;
}
void live_shortly() {
  on_thread([] { hm_free(hm_malloc(10)); });
}

}  // namespace

TEST(Registry, AThreadInheritsADeadThreadsHeapWhole) {
  ThreadHeap* first = nullptr;
  void* block = nullptr;
  on_thread([&] {
    hm_free(block = hm_malloc(64));
    first = &my_thread_heap();
  });
  on_thread([&] {
    EXPECT_FALSE(have_heap()) << "not before it allocates";
    EXPECT_EQ(hm_malloc(64), block) << "its cache, too";
    EXPECT_EQ(my_heap(), first);
  });
}

TEST(Registry, LiveHeapsAreNotShared) {
  constexpr unsigned kThreads = 6;
  ThreadHeap* used[kThreads];
  std::barrier all_have_one(kThreads);
  on_threads(kThreads, [&](unsigned thread) {
    hm_free(hm_malloc(10));
    used[thread] = &my_thread_heap();
    all_have_one.arrive_and_wait();
  });
  EXPECT_EQ(std::set<ThreadHeap*>(used, used + kThreads).size(), kThreads);
}

TEST(Registry, HeapsDoNotOutnumberLiveThreads) {
  for (int i = 0; i < 200; ++i) live_shortly();
  EXPECT_EQ(heaps(), 1u);
}

TEST(Registry, DeadHeapsAreDrainedAndUsedAgain) {
  on_thread([] { free_all(allocate_many(1000, 200)); });
  EXPECT_GT(stats_now().cached, 0u);
  EXPECT_EQ(allocated_after_collect(), 0u);
  EXPECT_EQ(stats_now().cached, 0u);
  EXPECT_TRUE(registry.is_valid());
  on_thread([] { EXPECT_TRUE(allocator_works()); });
  EXPECT_EQ(heaps(), 1u);
}

#if !defined(__SANITIZE_THREAD__)  // its run-time does not survive a fork beside threads

TEST(Registry, HeapsOfThreadsThatDidNotSurviveAreNeverUsed) {
  std::barrier step(2);
  ThreadHeap* other = nullptr;
  void* theirs = nullptr;
  std::thread thread([&] {
    theirs = hm_malloc(64);
    other = &my_thread_heap();
    step.arrive_and_wait();
    step.arrive_and_wait();
    hm_free(theirs);
  });
  step.arrive_and_wait();
  EXPECT_TRUE(child_succeeds([=] {
    hm_free(theirs);  // its blocks may be freed all the same
    hm_collect();
    return other->shelf.stranded && allocator_works();
  }));
  EXPECT_FALSE(other->shelf.stranded) << "not in the parent";
  step.arrive_and_wait();
  thread.join();
}

// A dead thread's fallback heap and a fork take the same two locks: in one order, or both wait for ever.
TEST(Registry, ForkWhileLateDestructorsAllocate) {
  static pthread_key_t key;
  pthread_key_create(&key, [](void* rounds) {
    for (int i = 0; i < 50; ++i) hm_free(hm_malloc(20000));
    auto left = reinterpret_cast<uintptr_t>(rounds);
    if (left > 1) pthread_setspecific(key, reinterpret_cast<void*>(left - 1));
  });
  EXPECT_TRUE(child_succeeds([] {
    std::atomic<bool> done{false}, sound{true};
    on_threads(3, [&](unsigned thread) {
      for (int i = 0; thread == 0 && i < 100; ++i)
        if (!child_succeeds([] { return true; })) sound = false;
      if (thread == 0) done = true;
      while (!done)
        on_thread([] {
          hm_free(hm_malloc(10));
          pthread_setspecific(key, reinterpret_cast<void*>(3));
        });
    });
    return sound.load();
  })) << "the child waits for ever, and its alarm ends it";
}

#endif

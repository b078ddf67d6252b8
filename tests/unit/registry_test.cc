#include "threads/registry.h"

#include <hmalloc/hmalloc_local.h>
#include <pthread.h>

#include <atomic>
#include <barrier>

#include "at_every_instruction.h"
#include "base/os_pages.h"
#include "core/superblock_pool.h"
#include "pages/footprint.h"
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

// By which caches are bounded.
TEST(Registry, TellsHowManyHeapsThreadsUse) {
  constexpr unsigned kThreads = 6;
  hm_free(hm_malloc(10));
  size_t before = footprint.heaps();
  EXPECT_GE(before, 1u);
  std::barrier all_have_one(kThreads), all_seen(kThreads);
  on_threads(kThreads, [&](unsigned) {
    hm_free(hm_malloc(10));
    all_have_one.arrive_and_wait();
    EXPECT_EQ(footprint.heaps(), before + kThreads);
    all_seen.arrive_and_wait();
  });
  EXPECT_EQ(footprint.heaps(), before);
  hm_thread_idle();
  EXPECT_EQ(footprint.heaps(), before - 1);
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

// ---- threads that go idle

TEST(Registry, AnIdleThreadGivesBackAllThatItHas) {
  on_thread([] {
    for (ClassIndex c : all_classes()) free_all(allocate_many(100, size_of(c)));
    hm_free(hm_malloc(100'000));  // a run that the heap keeps
    ThreadHeap& heap = my_thread_heap();
    auto slots = reinterpret_cast<char*>(&heap + 1);
    ASSERT_GT(stats_now().cached, 0u);
    ASSERT_GT(heap.large.bytes(), 0u);
    // Only whole pages go, and of 64 KB the thread has touched none.
    if (os::page_size() < kSlice) { ASSERT_GT(resident(slots, SmallHeap::kBytesBehind), 0u); }
    hm_thread_idle();
    EXPECT_FALSE(have_heap());
    EXPECT_EQ(stats_now().live_heaps, 0u);
    EXPECT_EQ(stats_now().cached, 0u);
    EXPECT_EQ(stats_now().active, 0u) << "no superblock waits in the pool";
    EXPECT_EQ(heap.large.bytes(), 0u);
    EXPECT_EQ(resident(slots, SmallHeap::kBytesBehind), 0u);
    EXPECT_TRUE(everything_is_valid());
    EXPECT_TRUE(allocator_works());
    EXPECT_EQ(my_heap(), &heap) << "nobody else has wanted it";
  });
  EXPECT_EQ(heaps(), 1u);
}

TEST(Registry, AnEndedThreadLeavesNoSlotsWhenItsHeapIsDrained) {
  char* slots = nullptr;
  on_thread([&] {
    for (ClassIndex c : all_classes()) free_all(allocate_many(100, size_of(c)));
    slots = reinterpret_cast<char*>(&my_thread_heap() + 1);
  });
  if (os::page_size() < kSlice) { ASSERT_GT(resident(slots, SmallHeap::kBytesBehind), 0u); }
  registry.drain_dead(Registry::Drain::kAll);
  EXPECT_EQ(resident(slots, SmallHeap::kBytesBehind), 0u);
}

#if HM_STEPS
// Another thread's tick, at any instruction of a drain of all.
TEST(Registry, WhatIsToBeDrainedIsDrained) {
  on_threads(4, [](unsigned) { hm_free(hm_malloc(10)); });
  size_t ticks = 0;
  auto tick = [&] {
    if (holds_a_lock() || ticks > 0) return false;
    size_t due = 0;
    registry.for_each([&](ThreadHeap& heap) { due += heap.due; });
    if (due > 0) ++ticks, registry.drain_dead(Registry::Drain::kAged);
    return false;
  };
  fork_at_every_instruction([] { registry.drain_dead(Registry::Drain::kAll); }, [] { return true; }, {.worth_a_fork = tick});
  EXPECT_GT(ticks, 0u);
  registry.for_each([](ThreadHeap& heap) { EXPECT_TRUE(heap.live || heap.drained); });
  EXPECT_TRUE(registry.is_valid());
}
#endif

TEST(Registry, ThreadsThatIdleInTurnUseOneHeap) {
  constexpr size_t kThreads = 200;
  std::barrier all_idle(kThreads);
  std::vector<std::thread> threads;
  std::vector<void*> blocks(kThreads);
  for (void*& block : blocks) {
    std::atomic<bool> idle{false};
    threads.emplace_back([&] {
      fill(block = hm_malloc(100), 100, 1);
      hm_thread_idle();
      idle = true;
      idle.notify_one();
      all_idle.arrive_and_wait();
    });
    idle.wait(false);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(heaps(), 1u);
  for (void* block : blocks) EXPECT_TRUE(matches(block, 100, 1));
  free_all(blocks);
  EXPECT_EQ(allocated_after_collect(), 0u);
}

TEST(Registry, AnIdleThreadsEndLeavesItsHeapToWhoeverHasIt) {
  ThreadHeap* heap = nullptr;
  std::barrier step(2);
  std::thread idler([&] {
    hm_free(hm_malloc(64));
    heap = &my_thread_heap();
    hm_thread_idle();
    step.arrive_and_wait();
    step.arrive_and_wait();
  });
  step.arrive_and_wait();
  on_thread([&] {
    void* block = hm_malloc(64);
    EXPECT_EQ(my_heap(), heap);
    step.arrive_and_wait();
    idler.join();
    EXPECT_TRUE(heap->live);
    on_thread([=] {
      hm_free(hm_malloc(64));
      EXPECT_NE(my_heap(), heap);
    });
    hm_free(block);
    EXPECT_TRUE(allocator_works());
    EXPECT_EQ(my_heap(), heap);
  });
  EXPECT_EQ(heaps(), 2u);
}

TEST(Registry, WarmHeapsAreInheritedBeforeThoseOfIdleThreads) {
  ThreadHeap* warm = nullptr;
  std::barrier step(2);
  std::thread ends([&] {
    hm_free(hm_malloc(64));
    warm = &my_thread_heap();
    step.arrive_and_wait();
    step.arrive_and_wait();
  });
  step.arrive_and_wait();
  on_thread([&] {
    hm_free(hm_malloc(64));
    step.arrive_and_wait();
    ends.join();
    hm_thread_idle();
    hm_free(hm_malloc(64));
    EXPECT_EQ(my_heap(), warm);
  });
}

TEST(Registry, ToGoIdleWithoutAHeapIsNothing) {
  on_thread([] {
    hm_thread_idle();
    EXPECT_FALSE(have_heap());
    hm_free(hm_malloc(64));
    hm_thread_idle();
    hm_thread_idle();
    EXPECT_TRUE(registry.is_valid());
  });
  EXPECT_EQ(heaps(), 1u);
}

TEST(Registry, BlocksOfAnIdleThreadStay) {
  std::vector<void*> blocks;
  on_thread([&] {
    for (unsigned i = 0; i < 3000; ++i) fill(blocks.emplace_back(hm_local_alloc(100)), 100, i);
    hm_thread_idle();
    for (unsigned i = 0; i < 1000; ++i) hm_local_free(blocks[i]);
    EXPECT_FALSE(have_heap()) << "a free needs none";
    on_thread([&] {  // inherits the heap
      for (void* block : allocate_many(3000, 100, hm_local_alloc)) {
        fill(block, 100, 7);
        hm_local_free(block);
      }
      for (unsigned i = 1000; i < 2000; ++i) {
        EXPECT_TRUE(matches(blocks[i], 100, i));
        hm_local_free(blocks[i]);
      }
    });
  });
  for (unsigned i = 2000; i < 3000; ++i) {
    EXPECT_TRUE(matches(blocks[i], 100, i));
    hm_free(blocks[i]);
  }
  EXPECT_EQ(allocated_after_collect(), 0u);
  EXPECT_EQ(heaps(), 1u);
}

TEST(Registry, DestructorsOfAThreadMayLetItGoIdle) {
  static pthread_key_t key;
  pthread_key_create(&key, [](void* rounds) {
    hm_thread_idle();
    hm_free(hm_malloc(20000));
    hm_thread_idle();
    auto left = reinterpret_cast<uintptr_t>(rounds);
    if (left > 1) pthread_setspecific(key, reinterpret_cast<void*>(left - 1));
  });
  for (int i = 0; i < 10; ++i)
    on_thread([] {
      pthread_setspecific(key, reinterpret_cast<void*>(3));
      hm_free(hm_malloc(10));
    });
  EXPECT_LE(heaps(), 2u) << "the fallback may be one";
  EXPECT_EQ(allocated_after_collect(), 0u);
  EXPECT_TRUE(registry.is_valid());
}

// Otherwise its last destructors would get a heap that nobody takes away from it.
TEST(Registry, AThreadThatEndsIdleHasEnded) {
  static pthread_key_t key;
  static bool has_ended;
  pthread_key_create(&key, [](void* rounds) {
    has_ended = thread_has_ended();
    if (rounds == &key) pthread_setspecific(key, &has_ended);  // once more, after the allocator's destructor
  });
  on_thread([] {
    hm_free(hm_malloc(10));
    pthread_setspecific(key, &key);
    hm_thread_idle();
  });
  EXPECT_TRUE(has_ended);
}

TEST(Registry, ThreadsThatIdleAtOnceWork) {
  on_threads(4, [](unsigned thread) {
    std::mt19937 random(kSeed + thread);
    std::vector<void*> blocks(100);
    for (int i = 0; i < 3000; ++i) {
      void*& block = blocks[random() % blocks.size()];
      hm_free(block);
      block = random() % 4 == 0 ? hm_local_alloc(random() % 1000) : hm_malloc(random() % 40000);
      if (random() % 16 == 0) hm_thread_idle();
    }
    free_all(blocks);
  });
  EXPECT_LE(heaps(), 8u) << "one of each thread, and one that it drains";
  EXPECT_TRUE(everything_is_valid());
  EXPECT_EQ(allocated_after_collect(), 0u);
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
    return other->shelf.stranded && allocator_works() && footprint.heaps() == 1;
  }));
  EXPECT_FALSE(other->shelf.stranded) << "not in the parent";
  step.arrive_and_wait();
  thread.join();
}

// A push, say, that the fork cut off behind the superblock's place in the chain.
TEST(Registry, AForkRepairsTheQueuesThatOthersWereChanging) {
  ThreadHeap* heap = nullptr;
  on_thread([&] { heap = heap_or_attach(); });
  ClassIndex c = class_of(500);
  for (SuperblockQueue* queue : {&superblock_pool.queue(0, c), &heap->shelf.queues[index_of(c)]}) {
    Superblock& sb = fresh_superblock(c);
    sb.states[0].mark_taken();
    queue->push(sb);
    std::barrier step(2);
    std::thread thread([&] {
      LockGuard guard(queue->lock());
      sb.set_home(nullptr);
      step.arrive_and_wait();
      step.arrive_and_wait();
      sb.set_home(queue);
    });
    step.arrive_and_wait();
    EXPECT_TRUE(child_succeeds([&] { return queue->count() == 1 && queue->is_valid() && allocator_works(); }));
    step.arrive_and_wait();
    thread.join();
    EXPECT_EQ(queue->pop(), &sb);
    drop(sb);
  }
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

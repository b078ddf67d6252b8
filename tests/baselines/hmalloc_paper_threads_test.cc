// A heap for each thread; inheritance; thread exit; fork (section 3).
#include <pthread.h>

#include "hmalloc_paper_support.h"

using namespace hm;
using namespace hm::hmalloc_paper;
using namespace hm::hmalloc_paper::test;

TEST(PaperThreads, AThreadInheritsADeadThreadsHeapWhole) {
  Heap* first = nullptr;
  void *shared = nullptr, *local = nullptr;
  on_thread([&] {
    shared = hmp_shared_alloc(64);
    local = hmp_local_alloc(64);
    first = my_heap;
    hmp_shared_free(shared);
  });
  EXPECT_EQ(registry.orphans, first);
  on_thread([&] {
    EXPECT_EQ(my_heap, nullptr) << "not before it allocates";
    EXPECT_EQ(hmp_shared_alloc(64), shared) << "its block cache list, too";
    EXPECT_EQ(my_heap, first);
    EXPECT_EQ(hmp_local_alloc(64), static_cast<char*>(local) + 64);
    hmp_local_free(local);  // the dead thread's, now ours
  });
  EXPECT_EQ(registry.heaps, 1u);
  EXPECT_EQ(registry.inherited, 1u);
}

TEST(PaperThreads, LiveThreadsShareNoHeap) {
  constexpr size_t kThreads = 6;
  std::atomic<size_t> arrived{0};
  std::vector<Heap*> used(kThreads);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      hmp_shared_free(hmp_shared_alloc(10));
      used[t] = my_heap;
      arrived.fetch_add(1);
      while (arrived.load() < kThreads) std::this_thread::yield();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set<Heap*>(used.begin(), used.end()).size(), kThreads);
}

TEST(PaperThreads, HeapsDoNotOutnumberLiveThreads) {
  for (int i = 0; i < 300; ++i) on_thread([] { hmp_shared_free(hmp_shared_alloc(10)); });
  EXPECT_EQ(registry.heaps, 1u);
}

// There is no global heap: what a live thread has freed is for that thread alone.
TEST(PaperThreads, FreedMemoryStaysWithItsHeap) {
  on_thread([] {
    std::vector<void*> blocks = allocate_many(1000, 64);
    for (void* block : blocks) hmp_shared_free(block);
    size_t before = first_superblocks.taken();
    on_thread([&] {
      EXPECT_NE(hmp_shared_alloc(64), nullptr);
      EXPECT_EQ(first_superblocks.taken(), before + 1);
    });
  });
}

namespace {

pthread_key_t late_key;
std::atomic<int> with_heap{0}, without_heap{0};

// Runs behind the allocator's own destructor in each round, until the heap is gone.
void late(void* pointer) {
  auto* block = static_cast<char*>(pointer);
  if (my_heap == nullptr) {
    without_heap.fetch_add(1);
    EXPECT_TRUE(thread_has_ended());
    EXPECT_NE(registry.orphans, nullptr);
  }
  with_heap.fetch_add(my_heap != nullptr);
  hmp_local_free(block);
  hmp_shared_free(hmp_shared_alloc(500));
  hmp_shared_free(hmp_shared_alloc(50'000));
  auto* next = static_cast<char*>(hmp_local_alloc(100));
  memset(next, 1, 100);
  if (my_heap != nullptr) pthread_setspecific(late_key, next);
  else hmp_local_free(next);
  EXPECT_TRUE((my_heap == nullptr) == thread_has_ended()) << "no heap comes back";
}

}  // namespace

TEST(PaperThreads, LateDestructorsAreServedByTheFallback) {
  on_thread([] { hmp_local_free(hmp_local_alloc(1)); });  // the allocator's key is made before ours
  pthread_key_create(&late_key, late);
  for (int i = 0; i < 20; ++i) on_thread([] { pthread_setspecific(late_key, hmp_local_alloc(100)); });
  EXPECT_EQ(with_heap.load(), 2 * 20) << "the thread's own local blocks can be freed in the first two rounds";
  EXPECT_EQ(without_heap.load(), 20);
  EXPECT_NE(fallback.heap.shared[class_of(500)].current, nullptr);
  EXPECT_NE(fallback.heap.local.current, nullptr);
  EXPECT_EQ(registry.heaps, 1u);
  EXPECT_TRUE(is_valid());
}

TEST(PaperThreads, AForkWaitsForEveryLock) {
  if (kThreadSanitizer) GTEST_SKIP() << "its run-time does not survive a fork beside threads";
  for (Lock* lock :
       {&fallback.lock, &registry.lock, &first_superblocks.lock(), &next_superblocks.lock(), &large_blocks.lock()}) {
    std::atomic<bool> held{false};
    std::thread holder([&] {
      LockGuard guard(*lock);
      held = true;
      usleep(50'000);
    });
    while (!held.load()) std::this_thread::yield();
    EXPECT_EQ(contract::status_of_child([&] {
                lock->lock();
                lock->unlock();
                for (size_t size = 1; size < 5'000'000; size = size * 3 + 1) {
                  hmp_local_free(memset(hmp_local_alloc(size), 1, size));
                  hmp_shared_free(memset(hmp_shared_alloc(size), 1, size));
                }
                return my_heap->is_valid();
              }),
              0);
    holder.join();
  }
}

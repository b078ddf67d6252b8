// A heap for each thread; inheritance; thread exit; fork (section 3).
#include <pthread.h>

#include "hmalloc_paper_support.h"

using namespace hmalloc_paper_test;

TEST(PaperThreads, AThreadInheritsADeadThreadsHeapWhole) {
  Heap* first = nullptr;
  void* shared = nullptr;
  char* local = nullptr;
  on_thread([&] {
    shared = get(64);
    local = static_cast<char*>(hmp_local_alloc(64));
    first = my_heap;
    give(shared);
  });
  EXPECT_EQ(registry.orphans, first);
  on_thread([&] {
    EXPECT_EQ(my_heap, nullptr) << "not before it allocates";
    EXPECT_EQ(get(64), shared) << "its block cache list, too";
    EXPECT_EQ(my_heap, first);
    EXPECT_EQ(hmp_local_alloc(64), local + 64);
    hmp_local_free(local);  // the dead thread's, now ours
  });
  EXPECT_EQ(registry.heaps, 1u);
  EXPECT_EQ(registry.inherited, 1u);
}

// There is no global heap: what a live thread has freed is for that thread alone.
TEST(PaperThreads, LiveThreadsShareNoHeap) {
  on_thread([] {
    give_all(get_many(1000, 64));
    Heap* mine = my_heap;
    size_t before = first_superblocks.taken();
    for (int i = 0; i < 100; ++i)
      on_thread([=] {
        get(64);
        EXPECT_NE(my_heap, mine);
      });
    EXPECT_EQ(first_superblocks.taken(), before + 1);
  });
  EXPECT_EQ(registry.heaps, 2u) << "heaps do not outnumber live threads";
}

namespace {

pthread_key_t late_key;
std::atomic<int> with_heap{0}, without_heap{0};

// Runs behind the allocator's own destructor in each round, until the heap is gone.
void late(void* block) {
  Heap* before = my_heap;
  ++(before != nullptr ? with_heap : without_heap);
  EXPECT_EQ(before == nullptr, thread_has_ended());
  EXPECT_TRUE(before != nullptr || registry.orphans != nullptr);
  hmp_local_free(block);
  give(get(500));
  give(get(50'000));
  void* next = memset(hmp_local_alloc(100), 1, 100);
  EXPECT_EQ(my_heap, before) << "no heap comes back";
  if (my_heap != nullptr) pthread_setspecific(late_key, next);
  else hmp_local_free(next);
}

}  // namespace

TEST(PaperThreads, LateDestructorsAreServedByTheFallback) {
  on_thread([] { hmp_local_free(hmp_local_alloc(1)); });  // the allocator's key is made before ours
  pthread_key_create(&late_key, late);
  for (int i = 0; i < 20; ++i) on_thread([] { pthread_setspecific(late_key, hmp_local_alloc(100)); });
  EXPECT_EQ(with_heap, 2 * 20) << "the thread's own local blocks can be freed in the first two rounds";
  EXPECT_EQ(without_heap, 20);
  EXPECT_NE(fallback.heap.shared[class_of(500)].current, nullptr);
  EXPECT_NE(fallback.heap.local.current, nullptr);
  EXPECT_EQ(registry.heaps, 1u);
  EXPECT_TRUE(hmalloc_paper::is_valid());
}

TEST(PaperThreads, AForkWaitsForEveryLock) {
  if (kThreadSanitizer) GTEST_SKIP() << "its run-time does not survive a fork beside threads";
  for (Lock* lock :
       {&fallback.lock, &registry.lock, &first_superblocks.lock(), &next_superblocks.lock(), &large_blocks.lock()}) {
    std::atomic<bool> held{false};
    std::thread holder([&] {
      LockGuard guard(*lock);
      held = true;
      held.notify_one();
      usleep(50'000);
    });
    held.wait(false);
    EXPECT_EQ(status_of_child([&] {
                lock->lock();
                lock->unlock();
                for (size_t size = 1; size < 5'000'000; size = size * 3 + 1) {
                  hmp_local_free(memset(hmp_local_alloc(size), 1, size));
                  give(memset(get(size), 1, size));
                }
                return my_heap->is_valid();
              }),
              0);
    holder.join();
  }
}

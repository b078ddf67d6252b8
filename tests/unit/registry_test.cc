#include "threads/registry.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>

#include "support.h"

using namespace hm;
using test::on_thread;

namespace {

size_t heaps() {
  size_t n = 0;
  registry.for_each([&](ThreadHeap&) { ++n; });
  return n;
}

// The child's verdict: true if it ended with 0 within the time.
[[maybe_unused]] bool child_succeeds(const std::function<bool()>& body) {
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(body() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool allocator_works() {
  for (size_t size = 1; size < 100000; size = size * 3 + 1) {
    void* block = hm_malloc(size);
    if (block == nullptr) return false;
    test::fill(block, size, 1);
    hm_free(block);
  }
  void* local = hm_local_alloc(100);
  hm_local_free(local);
  return local != nullptr && my_thread_heap().is_valid() && registry.is_valid();
}

}  // namespace

TEST(Registry, AThreadInheritsADeadThreadsHeapWhole) {
  ThreadHeap* first = nullptr;
  void* block = nullptr;
  on_thread([&] {
    block = hm_malloc(64);
    first = &my_thread_heap();
    hm_free(block);
  });
  on_thread([&] {
    EXPECT_FALSE(have_heap()) << "not before it allocates";
    EXPECT_EQ(hm_malloc(64), block) << "its cache, too";
    EXPECT_EQ(my_heap(), first);
    hm_free(block);
  });
}

TEST(Registry, LiveHeapsAreNotShared) {
  constexpr size_t kThreads = 6;
  std::atomic<size_t> arrived{0};
  std::set<ThreadHeap*> used;
  Lock guard_of_used;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      hm_free(hm_malloc(10));
      {
        LockGuard guard(guard_of_used);
        used.insert(&my_thread_heap());
      }
      arrived.fetch_add(1);
      while (arrived.load() < kThreads) std::this_thread::yield();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(used.size(), kThreads);
}

TEST(Registry, HeapsDoNotOutnumberLiveThreads) {
  on_thread([] { hm_free(hm_malloc(10)); });
  size_t before = heaps();
  for (int i = 0; i < 200; ++i) on_thread([] { hm_free(hm_malloc(10)); });
  EXPECT_EQ(heaps(), before);
}

TEST(Registry, DeadHeapsAreDrainedAndUsedAgain) {
  on_thread([] {
    std::vector<void*> blocks;
    for (int i = 0; i < 1000; ++i) blocks.push_back(hm_malloc(200));
    for (void* block : blocks) hm_free(block);
  });
  EXPECT_EQ(test::allocated_after_collect(), 0u);
  hm_stats stats;
  hm_stats_get(&stats);
  EXPECT_EQ(stats.cached, 0u);
  EXPECT_TRUE(registry.is_valid());
  size_t before = heaps();
  on_thread([] { EXPECT_TRUE(allocator_works()); });
  EXPECT_EQ(heaps(), before);
}

namespace {

std::atomic<int> late_rounds{0};
std::array<pthread_key_t, 8> late_keys;

// The block says how often its destructor shall set the value again.
void be_late(pthread_key_t key, int rounds) {
  auto* block = static_cast<int*>(hm_malloc(100));
  *block = rounds;
  pthread_setspecific(key, block);
}

void late(void* pointer) {
  auto* block = static_cast<int*>(pointer);
  int rounds = *block;
  hm_free(block);
  void* local = hm_local_alloc(50);
  memset(local, 1, 50);
  hm_local_free(local);
  void* large = hm_malloc(200000);
  hm_free(large);
  if (rounds > 0) be_late(late_keys[static_cast<size_t>(late_rounds.fetch_add(1)) % 8], rounds - 1);
}

}  // namespace

// Destructors of thread-specific data that run after the heap is gone allocate and free.
TEST(Registry, LateDestructorsAreServed) {
  for (pthread_key_t& key : late_keys) pthread_key_create(&key, late);
  for (int i = 0; i < 50; ++i)
    on_thread([] {
      for (pthread_key_t key : late_keys) be_late(key, 2);
      hm_local_free(hm_local_alloc(50));
    });
  EXPECT_GE(late_rounds.load(), 50 * 8);
  EXPECT_TRUE(test::everything_is_valid());
  for (pthread_key_t key : late_keys) pthread_key_delete(key);
}

#if !defined(__SANITIZE_THREAD__)  // its run-time does not survive a fork beside threads

TEST(Registry, TheChildOfAForkGoesOn) {
  hm_free(hm_malloc(100));
  void* block = hm_malloc(1000);
  EXPECT_TRUE(child_succeeds([&] {
    hm_free(block);
    return allocator_works();
  }));
  EXPECT_TRUE(allocator_works());
  hm_free(block);
}

TEST(Registry, HeapsOfThreadsThatDidNotSurviveAreNeverUsed) {
  std::atomic<bool> ready{false}, done{false};
  std::atomic<ThreadHeap*> other{nullptr};
  void* theirs = nullptr;
  std::thread thread([&] {
    theirs = hm_malloc(64);
    other.store(&my_thread_heap());
    ready.store(true);
    while (!done.load()) std::this_thread::yield();
    hm_free(theirs);
  });
  while (!ready.load()) std::this_thread::yield();
  EXPECT_TRUE(child_succeeds([&] {
    bool stranded = false;
    registry.for_each([&](ThreadHeap& heap) { stranded = stranded || (&heap == other.load() && heap.shelf.stranded); });
    hm_free(theirs);  // its blocks may be freed all the same
    hm_collect();
    return stranded && allocator_works();
  }));
  EXPECT_FALSE(other.load()->shelf.stranded) << "not in the parent";
  done.store(true);
  thread.join();
}

TEST(Registry, ForkAtAnyMoment) {
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(test::kSeed + t);
      while (!done.load()) {
        std::vector<void*> blocks;
        for (int i = 0; i < 200; ++i) blocks.push_back(hm_malloc(random() % 40000));
        for (void* block : blocks) hm_free(block);
        if (random() % 16 == 0) hm_collect();
        if (random() % 8 == 0) on_thread([] { hm_free(hm_malloc(10)); });
      }
    });
  for (int i = 0; i < 60; ++i)
    EXPECT_TRUE(child_succeeds([] {
      hm_collect();
      return allocator_works();
    })) << "fork "
        << i;
  done.store(true);
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(test::everything_is_valid());
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
    std::atomic<bool> done{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t)
      threads.emplace_back([&] {
        while (!done.load())
          on_thread([] {
            hm_free(hm_malloc(10));
            pthread_setspecific(key, reinterpret_cast<void*>(3));
          });
      });
    bool sound = true;
    for (int i = 0; i < 100; ++i) sound = child_succeeds([] { return true; }) && sound;
    done.store(true);
    for (std::thread& thread : threads) thread.join();
    return sound;
  })) << "the child waits for ever, and its alarm ends it";
  pthread_key_delete(key);
}

#endif

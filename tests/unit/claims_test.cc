// What another thread takes from a heap whose thread sleeps, and what it leaves.
#include "threads/claims.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>

#include "sleeper.h"

#if !defined(__SANITIZE_THREAD__)  // it knows nothing of the barrier, so nothing is claimed

using namespace hm;
using namespace hm::test;

TEST_F(AClaim, LeavesASleeperOneBlockOfEachClass) {
  Sleeper sleeper;
  ThreadHeap* heap = nullptr;
  sleeper.does([&] {
    for (size_t size : {16u, 64u, 500u, 3000u, 20000u}) free_all(allocate_many(100, size));
    hm_free(hm_malloc(100'000));
    hm_free(hm_malloc(100'000));  // a run that the heap keeps
    heap = &my_thread_heap();
  });
  ASSERT_GT(cached_in(*heap), 50u);
  ASSERT_GT(heap->large.bytes(), 0u);
  hm_collect();
  EXPECT_EQ(cached_in(*heap), 5u);
  EXPECT_EQ(stats_now().cached, 16u + 64 + 512 + 3072 + 20480);
  EXPECT_EQ(heap->large.bytes(), 0u);
  for (ClassIndex c : all_classes()) EXPECT_EQ(heap->classes[index_of(c)].current, nullptr);
  hm_collect();
  EXPECT_EQ(cached_in(*heap), 5u) << "and once more changes nothing";
  sleeper.does([&] {
    EXPECT_EQ(&my_thread_heap(), heap);
    EXPECT_TRUE(allocator_works());
    std::vector<void*> blocks = allocate_many(100, 64);
    EXPECT_EQ(std::set<void*>(blocks.begin(), blocks.end()).size(), 100u);
    free_all(blocks);
    EXPECT_EQ(heap->cached_blocks(index_of(class_of(64))), CacheTuner::first_capacity(index_of(class_of(64))))
        << "the caches have their room again";
    EXPECT_TRUE(my_heap_is_valid());
    hm_collect();
  });
}

TEST_F(AClaim, ReachesAThousandBlocksInMovedCaches) {
  Sleeper sleeper;
  ThreadHeap* heap = nullptr;
  sleeper.does([&] {
    for (int i = 0; i < 10; ++i) free_all(allocate_many(1000, 32));
    heap = &my_thread_heap();
    EXPECT_GT(heap->cached_blocks(index_of(class_of(32))), 500u) << "it has grown";
  });
  hm_collect();
  EXPECT_EQ(cached_in(*heap), 1u);
  sleeper.does([&] {
    free_all(allocate_many(1000, 32));
    EXPECT_GT(heap->cached_blocks(index_of(class_of(32))), 500u);
    EXPECT_TRUE(my_heap_is_valid());
    hm_collect();
  });
}

TEST_F(AClaim, IsNotMadeOnHeapsInUseOrHandedOut) {
  Sleeper sleeper;
  ThreadHeap* heap = nullptr;
  sleeper.does([&] {
    free_all(allocate_many(100, 64));
    heap = &my_thread_heap();
    heap->in_use = true;
  });
  size_t before = cached_in(*heap);
  take_from_sleepers();
  EXPECT_EQ(cached_in(*heap), before);
  sleeper.does([&] {
    heap->in_use = false;
    hm_cache_of(64);
  });
  take_from_sleepers();
  EXPECT_EQ(cached_in(*heap), kChecked ? 1 : before);
  EXPECT_EQ(heap->claim.load(), kChecked ? Claim::kEmptied : Claim::kNone) << "the checked library hands out none";
  sleeper.does([&] {
    hm_thread_idle();  // which ends the handles
    EXPECT_FALSE(heap->handed_out);
    free_all(allocate_many(100, 64));
    heap = &my_thread_heap();
  });
  take_from_sleepers();
  EXPECT_EQ(cached_in(*heap), 1u);
  sleeper.does([] { hm_collect(); });
}

TEST_F(AClaim, IsNotMadeOnAHeapThatMovedSinceItWasSeen) {
  Sleeper sleeper;
  ThreadHeap* heap = nullptr;
  sleeper.does([&] {
    free_all(allocate_many(100, 64));
    heap = &my_thread_heap();
  });
  claims.look(registry.newest());
  sleeper.does([] {
    [[maybe_unused]] void* volatile block = hm_malloc(64);
    hm_free(block), hm_free(hm_malloc(3000));
  });
  size_t before = cached_in(*heap);
  claims.collect(registry.newest());
  EXPECT_EQ(cached_in(*heap), before);
  sleeper.does([] { hm_collect(); });
}

TEST_F(AClaim, MayBeFollowedByTheThreadsEnd) {
  ThreadHeap* heap = nullptr;
  {
    Sleeper sleeper;
    sleeper.does([&] {
      free_all(allocate_many(100, 64));
      heap = &my_thread_heap();
    });
    hm_collect();
    ASSERT_EQ(heap->claim.load(), Claim::kEmptied);
  }
  EXPECT_EQ(heap->claim.load(), Claim::kNone);
  EXPECT_TRUE(heap->in_use);
  on_thread([&] {
    EXPECT_TRUE(allocator_works());
    EXPECT_EQ(&my_thread_heap(), heap);
  });
}

TEST_F(AClaim, TakesFromMoreHeapsThanItLooksAtAtOnce) {
  constexpr unsigned kThreads = 40;
  std::barrier step(kThreads + 1);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      free_all(allocate_many(100, 64));
      step.arrive_and_wait();
      step.arrive_and_wait();
      free_all(allocate_many(100, 64));  // whether all is valid can be asked only when nobody changes anything
    });
  step.arrive_and_wait();
  hm_collect();
  EXPECT_EQ(stats_now().cached, kThreads * 64u);
  step.arrive_and_wait();
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(allocator_works());
}

// As if the kernel were older than Linux 4.14.
bool without_membarrier() {
  sock_filter program[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  sock_fprog filter{std::size(program), program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST_F(AClaim, IsNotMadeWithoutTheBarrier) {
  EXPECT_TRUE(child_succeeds([] {
    if (!without_membarrier()) return true;  // an emulator
    Sleeper sleeper;
    ThreadHeap* heap = nullptr;
    sleeper.does([&] {
      free_all(allocate_many(100, 64));
      heap = &my_thread_heap();
    });
    size_t before = cached_in(*heap);
    hm_collect();
    bool untouched = cached_in(*heap) == before && heap->claim == Claim::kNone;
    bool works = false;
    sleeper.does([&] { works = allocator_works() && my_heap_is_valid(); });
    return untouched && works;
  }));
}

#endif

// When there is a tracer, and what that does to sampling.  The tracer is this program itself: the semaphores are words.
#include <hmalloc/hmalloc_local.h>

#include <atomic>

#include "profile/sampler.h"
#include "tracing.h"
#include "upkeep/reclaim.h"

using namespace hm;
using namespace hm::test;

#if HM_PROBES

TEST_F(Tracing, ItBeginsAndEndsWithTheTracer) {
  work();
  EXPECT_FALSE(sampler.is_sampling() || counting.is_on());
  count_semaphores(1);
  work();
  EXPECT_TRUE(sampler.is_sampling() && counting.is_on());
  EXPECT_EQ(sampler.rate(), kTracerRate);
  EXPECT_EQ(hm_cache_of(64), nullptr) << "what it handed out would not be counted";
  count_semaphores(1);  // another one
  count_semaphores(-1);
  work();
  EXPECT_TRUE(sampler.is_sampling());
  count_semaphores(-1);
  work();
  EXPECT_FALSE(sampler.is_sampling() || counting.is_on());
  EXPECT_EQ(hm_cache_of(64) == nullptr, kChecked);
}

TEST_F(Tracing, EitherProbeWillDo) {
  for (unsigned short* word : {&otel_memory_alloc_semaphore, &otel_memory_free_semaphore}) {
    __atomic_store_n(word, uint16_t{1}, __ATOMIC_RELAXED);
    work();
    EXPECT_TRUE(sampler.is_sampling());
    __atomic_store_n(word, uint16_t{0}, __ATOMIC_RELAXED);
    work();
    EXPECT_FALSE(sampler.is_sampling());
  }
}

// Whoever may be the only one to come by.
TEST_F(Tracing, ItIsNoticedOnEveryWay) {
  struct Way {
    const char* name;
    std::vector<void*> (*before)();
    void (*go)(const std::vector<void*>&);
  };
  auto nothing = [] { return std::vector<void*>(); };
  auto on_a_thread_that_only_frees = [](const std::vector<void*>& blocks) { on_thread([&] { free_all(blocks); }); };
  const Way ways[] = {
      {"a heap's operations on small blocks", nothing, [](auto&) { work(); }},
      {"a heap's operations on large blocks", nothing, [](auto&) { free_all(allocate_many(100, kMiB / 2)); }},
      {"frees without a heap", [] { return allocate_many(2000, 3000); }, on_a_thread_that_only_frees},
      {"large frees without a heap", [] { return allocate_many(50, 40'000); }, on_a_thread_that_only_frees},
      {"the background thread", nothing, [](auto&) { background_round(); }},
  };
  for (const Way& way : ways)
    for (int by : {1, -1}) {
      std::vector<void*> blocks = way.before();
      count_semaphores(by);
      EXPECT_EQ(sampler.is_sampling(), by < 0) << way.name << ": it has been noticed before";
      way.go(blocks);
      EXPECT_EQ(sampler.is_sampling(), by > 0) << way.name;
    }
}

// A thread that has all it needs in its cache comes by for samples alone.
TEST_F(Tracing, ItsEndIsNoticedWithoutASlowPath) {
  count_semaphores(1);
  work();
  void* block = hm_malloc(20'000);
  count_semaphores(-1);
  for (int i = 0; i < 100'000 && sampler.is_sampling(); ++i) {
    hm_free(block);
    block = hm_malloc(20'000);
  }
  EXPECT_FALSE(sampler.is_sampling() || counting.is_on());
  hm_free(block);
}

// It hears of no free any more: so nothing needs to be counted for what it was told of.
TEST_F(Tracing, NothingStaysBehindItsBlocks) {
  count_semaphores(1);
  work();
  std::vector<void*> small = allocate_many(20'000, 1000), large = allocate_many(40, kMiB);
  EXPECT_TRUE(samples.any()) << "large blocks";
  EXPECT_FALSE(samples.any_profiled());
  count_semaphores(-1);
  work();
  EXPECT_FALSE(counting.is_on());
  for (void* block : small) hm_free_sized(block, 1000);  // some go into a cache as they are
  EXPECT_TRUE(my_heap()->is_valid());
  std::vector<void*> again = allocate_many(20'000, 1000);
  free_all(again);
  free_all(large);
  EXPECT_FALSE(samples.any() || counting.is_on());
}

TEST_F(Tracing, AProfileHasNoPartOfIt) {
  count_semaphores(1);
  work();
  std::vector<void*> blocks = allocate_many(20'000, 1000);
  for (void* each : allocate_many(40, kMiB)) blocks.push_back(each);
  Snapshot snapshot;
  samples.take(snapshot);
  EXPECT_TRUE(snapshot.complete);
  EXPECT_EQ(snapshot.stack_count, 0u);
  EXPECT_EQ(snapshot.lost, 0u);
  free_all(blocks);
  count_semaphores(-1);
  work();
}

TEST_F(Tracing, EachHasItsOwnRate) {
  hm_profile_start(4 * kKiB);
  hm_profile_stop();
  count_semaphores(1);
  work();
  EXPECT_EQ(sampler.rate(), kTracerRate) << "not that of an earlier profile";
  EXPECT_EQ(sampler.profile_rate(), 4 * kKiB) << "of which there may still be a dump";
  hm_profile_start(8 * kKiB);
  EXPECT_EQ(sampler.rate(), 8 * kKiB) << "a profile says how it wants it";
  work();
  hm_profile_stop();
  EXPECT_EQ(sampler.rate(), kTracerRate);
  EXPECT_TRUE(sampler.has_tracer());
  hm_profile_start(8 * kKiB);
  count_semaphores(-1);
  work();
  EXPECT_TRUE(sampler.has_profile() && !sampler.has_tracer());
  EXPECT_EQ(sampler.rate(), 8 * kKiB);
  hm_profile_stop();
  EXPECT_FALSE(sampler.is_sampling());
}

TEST_F(Tracing, AChildIsTracedUntilItLooks) {
  count_semaphores(1);
  work();
  EXPECT_TRUE(child_succeeds([] {
    bool before = sampler.is_sampling();
    count_semaphores(-1);
    work();
    return before && !sampler.is_sampling() && !counting.is_on() && samples.is_valid() && my_heap()->is_valid();
  }));
  EXPECT_TRUE(sampler.is_sampling());
  count_semaphores(-1);
  work();
}

TEST_F(Tracing, ComesAndGoesWhileOthersAllocate) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      while (!stop) {
        for (size_t size : {16u, 100u, 1000u, 5000u, 50'000u}) free_all(allocate_many(20, size));
        free_all(allocate_many(1, 2 * kMiB));
        hm_free_sized(hm_malloc(64), 64);
        hm_local_free_sized(hm_local_alloc(64), 64);
      }
      EXPECT_TRUE(!have_heap() || my_heap()->is_valid());
    });
  for (int i = 0; i < 60; ++i) {
    count_semaphores(1);
    if (i % 3 == 0) hm_profile_start(1000);
    work();
    count_semaphores(-1);
    if (i % 3 == 0) hm_profile_stop();
    if (i % 10 == 0) {
      EXPECT_TRUE(child_succeeds([] {
        work();
        return samples.is_valid() && my_heap()->is_valid() && sampler.has_tracer() == tracer_listens();
      }));
    }
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  work();
  EXPECT_FALSE(sampler.is_sampling());
}

#else

TEST(Tracing, NotBuilt) { GTEST_SKIP() << "sys/sdt.h was missing"; }

#endif

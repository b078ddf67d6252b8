// The explicit API of <hmalloc/hmalloc.h>, where it is more than a name for something tested elsewhere.
#include <hmalloc/hmalloc_local.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "support.h"

using namespace hm;
using namespace hm::test;

namespace {

using Api = NothingIsLost;

void for_each_size(const std::function<void(size_t)>& test) {
  for (size_t size = 0; size <= 40000; size += size < 1000 ? 1 : 511) {
    SCOPED_TRACE(size);
    test(size);
  }
}
void expect_whole_lines(void* block, size_t size) {
  ASSERT_EQ(address_of(block) % kLine, 0u);
  ASSERT_GE(hm_usable_size(block), std::max<size_t>(size, 1));
  ASSERT_EQ(hm_usable_size(block) % kLine, 0u);
}

}  // namespace

TEST_F(Api, VersionIsTheHeaders) { EXPECT_STREQ(hm_version(), HM_VERSION_STRING); }

TEST_F(Api, SharedBlocksAreWholeLines) {
  std::vector<void*> blocks;
  for_each_size([&](size_t size) {
    blocks.push_back(hm_shared_alloc(size));
    expect_whole_lines(blocks.back(), size);
  });
  for (void* block : blocks) hm_shared_free(block);
}

TEST_F(Api, ASizedFreeFindsTheSameCache) {
  for_each_size([](size_t size) {
    hm_shared_free_sized(hm_shared_alloc(size), size);
    hm_free_sized(hm_malloc(size), size);
  });
  for (size_t size : {0, 64}) {
    hm_free_sized(nullptr, size);
    hm_shared_free_sized(nullptr, size);
  }
}

TEST_F(Api, ACacheInTheHandServesItsSize) {
  for_each_size([](size_t size) {
    hm_cache *general = hm_cache_of(size), *shared = hm_shared_cache_of(size);
    ASSERT_EQ(general == nullptr, size > kSmallMax);
    ASSERT_EQ(shared == nullptr, size > kSmallMax);
    if (general == nullptr) return;
    void *block = hm_cache_alloc(general), *line = hm_cache_alloc(shared), *plain = hm_malloc(size);
    ASSERT_EQ(hm_usable_size(block), hm_usable_size(plain));
    expect_whole_lines(line, size);
    hm_cache_free(general, block);
    void* again = hm_cache_alloc(general);
    ASSERT_TRUE(again == block || size > 512);  // freed last, taken first
    hm_free(again);
    hm_cache_free(general, plain);
    hm_cache_free(shared, line);
  });
}

TEST_F(Api, ACacheInTheHandRunsEmptyAndFull) {
  hm_cache* cache = hm_cache_of(48);
  std::vector<void*> blocks(20000);
  for (void*& block : blocks) memset(block = hm_cache_alloc(cache), 1, 48);
  EXPECT_EQ(std::set<void*>(blocks.begin(), blocks.end()).size(), blocks.size());
  for (void* block : blocks) hm_cache_free(cache, block);
}

TEST_F(Api, AThreadsFirstCallMayAskForACache) {
  on_thread([] {
    EXPECT_FALSE(have_heap());
    hm_cache* cache = hm_cache_of(64);
    ASSERT_NE(cache, nullptr);
    hm_cache_free(cache, hm_cache_alloc(cache));
  });
}

TEST_F(Api, ACacheOfAnotherThreadIsRefused) {
  hm_cache* cache = hm_cache_of(64);
  auto use = [=] {
    on_thread([=] {
      hm_cache_of(64);  // so that this thread has a heap of its own
      for (int i = 0; i < 100000; ++i) (void)*static_cast<volatile char*>(hm_cache_alloc(cache));
    });
  };
  EXPECT_EXIT(use(), testing::KilledBySignal(SIGABRT), "not a cache of this thread");
}

TEST_F(Api, AlignedAllocRefusesNoPowers) {
  for (size_t alignment : {0, 3, 12, 100}) {
    errno = 0;
    EXPECT_EQ(hm_aligned_alloc(alignment, 100), nullptr);
    EXPECT_EQ(errno, EINVAL);
  }
}

TEST_F(Api, CollectSaysWhetherMemoryWentBack) {
  options.decay_ms = 60'000;  // however slow the machine is, what is freed is kept
  keep_written(8 * kMiB);
  EXPECT_EQ(hm_collect(), 1);
  EXPECT_EQ(hm_collect(), 0);
}

TEST_F(Api, AThreadMayGoIdleWithBlocksOfAllKinds) {
  std::vector<void*> blocks{hm_local_alloc(200), hm_shared_alloc(200)};
  for (size_t size : {20u, 3000u, 20000u, 60000u, 700000u, 3000000u}) blocks.push_back(hm_malloc(size));
  for (void* block : blocks) fill(block, hm_usable_size(block), 1);
  hm_cache_free(hm_cache_of(48), hm_malloc(48));
  errno = 4242;
  hm_thread_idle();
  EXPECT_EQ(errno, 4242);
  EXPECT_FALSE(have_heap());
  blocks.push_back(hm_cache_alloc(hm_cache_of(48)));  // a new handle works
  fill(blocks.back(), 48, 1);
  for (void* block : blocks) {
    EXPECT_TRUE(matches(block, hm_usable_size(block), 1));
    hm_free(block);
  }
}

TEST_F(Api, KindsMayBeFreedByAnyFree) {
  hm_free(hm_shared_alloc(100));
  hm_shared_free(hm_malloc(100));
  hm_free(hm_local_alloc(100));
  hm_local_free(hm_malloc(100));
  hm_local_free(hm_shared_alloc(100000));
  hm_local_free(nullptr);
}

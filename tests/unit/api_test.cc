// The explicit API of <hmalloc/hmalloc.h>, where it is more than a name for something tested elsewhere.
#include <cerrno>

#include "support.h"

using namespace hm;
using test::on_thread;

TEST(Api, VersionIsTheHeaders) { EXPECT_STREQ(hm_version(), HM_VERSION_STRING); }

TEST(Api, SharedBlocksAreWholeLines) {
  std::vector<void*> blocks;
  for (size_t size = 0; size <= 40000; size += size < 1000 ? 1 : 511) {
    void* block = hm_shared_alloc(size);
    ASSERT_EQ(address_of(block) % kLine, 0u) << size;
    ASSERT_GE(hm_usable_size(block), std::max<size_t>(size, 1));
    ASSERT_EQ(hm_usable_size(block) % kLine, 0u);
    blocks.push_back(block);
  }
  for (void* block : blocks) hm_shared_free(block);
  EXPECT_EQ(test::allocated_after_collect(), 0u);
}

TEST(Api, ASizedFreeFindsTheSameCache) {
  for (size_t size = 0; size <= 40000; size += size < 1000 ? 1 : 511) {
    void* block = hm_shared_alloc(size);
    hm_shared_free_sized(block, size);
    block = hm_malloc(size);
    hm_free_sized(block, size);
  }
  hm_free_sized(nullptr, 0);
  hm_free_sized(nullptr, 64);
  hm_shared_free_sized(nullptr, 0);
  hm_shared_free_sized(nullptr, 64);
  EXPECT_EQ(test::allocated_after_collect(), 0u);
  EXPECT_TRUE(my_heap()->is_valid());
}

TEST(Api, ACacheInTheHandServesItsSize) {
  for (size_t size = 0; size <= 40000; size += size < 1000 ? 1 : 511) {
    hm_cache* general = hm_cache_of(size);
    hm_cache* shared = hm_shared_cache_of(size);
    ASSERT_EQ(general == nullptr, size > kSmallMax);
    ASSERT_EQ(shared == nullptr, size > kSmallMax);
    if (general == nullptr) continue;
    void* block = hm_cache_alloc(general);
    void* line = hm_cache_alloc(shared);
    void* plain = hm_malloc(size);
    ASSERT_EQ(hm_usable_size(block), hm_usable_size(plain)) << size;
    ASSERT_EQ(address_of(line) % kLine, 0u) << size;
    ASSERT_EQ(hm_usable_size(line) % kLine, 0u) << size;
    hm_cache_free(general, block);
    void* again = hm_cache_alloc(general);
    ASSERT_TRUE(again == block || size > 512) << size;  // freed last, taken first
    hm_free(again);
    hm_cache_free(general, plain);
    hm_cache_free(shared, line);
  }
  EXPECT_EQ(test::allocated_after_collect(), 0u);
  EXPECT_TRUE(my_heap()->is_valid());
}

TEST(Api, ACacheInTheHandRunsEmptyAndFull) {
  hm_cache* cache = hm_cache_of(48);
  std::vector<void*> blocks;
  for (int i = 0; i < 20000; ++i) {
    blocks.push_back(hm_cache_alloc(cache));
    memset(blocks.back(), i & 0xff, 48);
  }
  std::sort(blocks.begin(), blocks.end());
  EXPECT_EQ(std::unique(blocks.begin(), blocks.end()), blocks.end());
  for (void* block : blocks) hm_cache_free(cache, block);
  EXPECT_EQ(test::allocated_after_collect(), 0u);
}

TEST(Api, AThreadsFirstCallMayAskForACache) {
  on_thread([] {
    EXPECT_FALSE(have_heap());
    hm_cache* cache = hm_cache_of(64);
    ASSERT_NE(cache, nullptr);
    hm_cache_free(cache, hm_cache_alloc(cache));
  });
  EXPECT_EQ(test::allocated_after_collect(), 0u);
}

TEST(Api, ACacheOfAnotherThreadIsRefused) {
  hm_cache* cache = hm_cache_of(64);
  std::vector<void*> blocks;
  EXPECT_EXIT(on_thread([&] {
                hm_cache_of(64);  // so that this thread has a heap of its own
                for (int i = 0; i < 100000; ++i) blocks.push_back(hm_cache_alloc(cache));
              }),
              testing::KilledBySignal(SIGABRT), "not a cache of this thread");
}

TEST(Api, ASizedFreeByAThreadWithoutAHeap) {
  void* block = hm_shared_alloc(64);
  on_thread([=] {
    hm_shared_free_sized(block, 64);
    EXPECT_FALSE(have_heap());
  });
  EXPECT_EQ(test::allocated_after_collect(), 0u);
}

TEST(Api, AlignedAllocRefusesNoPowers) {
  for (size_t alignment : {0, 3, 12, 100}) {
    errno = 0;
    EXPECT_EQ(hm_aligned_alloc(alignment, 100), nullptr);
    EXPECT_EQ(errno, EINVAL);
  }
}

TEST(Api, CollectSaysWhetherMemoryWentBack) {
  hm_free(hm_malloc(8 * kMiB));  // the second of a size is kept
  void* block = hm_malloc(8 * kMiB);
  memset(block, 1, 8 * kMiB);
  hm_free(block);
  EXPECT_EQ(hm_collect(), 1);
  EXPECT_EQ(hm_collect(), 0);
}

TEST(Api, KindsMayBeFreedByAnyFree) {
  hm_free(hm_shared_alloc(100));
  hm_shared_free(hm_malloc(100));
  hm_free(hm_local_alloc(100));
  hm_local_free(hm_malloc(100));
  hm_local_free(hm_shared_alloc(100000));
  hm_local_free(nullptr);
  EXPECT_EQ(test::allocated_after_collect(), 0u);
  EXPECT_TRUE(my_heap()->is_valid());
}

// The variant that the article compares with: one lock around everything.
#include "ar_malloc_support.h"

using namespace hm;
using namespace hm::ar_malloc;

TEST(ArMallocLock, ThereAreOneArenaAndNoCacheWhateverTheOptionsSay) {
  setenv("AR_MALLOC_CACHE", "100", 1);
  start_with("5");
  EXPECT_EQ(arenas_in_use(), 1u);
  ar_malloc::free(allocate(100));
  EXPECT_EQ(cache.most, 0u);
  for (int i = 0; i < 3; ++i) on_thread([] { EXPECT_TRUE(is_in(allocate(100), arenas[0])); });
}

TEST(ArMallocLock, EveryCallTakesIt) {
  for (size_t size : {size_t{16}, size_t{1000}, size_t{3000}}) {
    uint64_t locks = counted().locks;
    for (int i = 0; i < 10; ++i) ar_malloc::free(allocate(size));
    EXPECT_EQ(counted().locks, locks + 20);
  }
  EXPECT_EQ(counted().out, 30u) << "no batches";
}

TEST(ArMallocLock, NothingStaysInACache) {
  std::vector<void*> blocks = allocate_many(1000, 64);
  free_all(blocks);
  EXPECT_EQ(usage().cached, 0u);
  EXPECT_EQ(counted().bytes_out, 0u);
  EXPECT_TRUE(is_valid());
}

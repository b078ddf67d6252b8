// The variant that the article compares with: one lock around everything.
#include "ar_malloc_support.h"

using namespace ar_malloc_test;

TEST(ArMallocLock, IsOneArenaAndNoCacheWhateverTheOptionsSay) {
  start_with("5", "100");
  EXPECT_EQ(arenas_in_use(), 1u);
  for (int i = 0; i < 3; ++i) on_thread([] { EXPECT_TRUE(is_in(get(100), 0)); });
  for (size_t size : {16, 1000, 3000}) {
    uint64_t locks = counted().locks, out = counted().out;
    for (int i = 0; i < 10; ++i) give(get(size));
    EXPECT_EQ(counted().locks, locks + 20) << "every call takes it";
    EXPECT_EQ(counted().out, out + 10) << "no batches";
  }
  EXPECT_EQ(usage().cached, 0u);
}

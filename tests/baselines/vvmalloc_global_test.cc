// Approach 1: one heap behind one lock, which grows at its end.
#include "contract_support.h"

using namespace hm;
using namespace contract;

// The lab's heap is one piece: an extension is merged with the free block before it, whoever frees.
TEST(Global, AnExtensionMergesWithTheEnd) {
  for (bool by_another : {false, true}) {
    uint64_t first = vvmalloc::counters().extensions;
    std::vector<void*> blocks = get_many(200, 1000);
    EXPECT_TRUE(by_another || vvmalloc::counters().extensions >= first + 40) << "of 4 KB each";
    if (by_another) on_thread([&] { give_all(blocks); });
    else give_all(blocks);
    ASSERT_TRUE(vvmalloc::is_valid());
    uint64_t before = vvmalloc::counters().extensions;
    give(get(200 * 1000));
    EXPECT_EQ(vvmalloc::counters().extensions, before);
  }
}

TEST(Global, ThreadsWaitForTheLock) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([] {
      while (vvmalloc::counters().heap_wait_ns == 0)
        for (int n = 0; n < 1000; ++n) give(get(100));
    });
  for (std::thread& thread : threads) thread.join();
  expect_nothing_left();
}

// Approach 1: one heap, which grows at its end.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "baselines/vvmalloc/block.h"
#include "baselines/vvmalloc/vvmalloc.h"

using namespace hm;
using namespace hm::vvmalloc;

// The lab's heap is one piece: an extension is merged with the free block before it.
TEST(Global, AnExtensionMergesWithTheEnd) {
  std::vector<void*> blocks;
  uint64_t first = counters().extensions;
  for (int i = 0; i < 200; ++i) blocks.push_back(allocate(1000));
  EXPECT_GE(counters().extensions, first + 40) << "of 4 KB each";
  for (void* block : blocks) deallocate(block, "test");
  ASSERT_TRUE(is_valid());
  Counters before = counters();
  void* large = allocate(200 * 1000);
  EXPECT_EQ(counters().extensions, before.extensions);
  deallocate(large, "test");
}

TEST(Global, ABlockFreedByAnotherThreadMergesToo) {
  std::vector<void*> blocks;
  for (int i = 0; i < 200; ++i) blocks.push_back(allocate(1000));
  std::thread([&] {
    for (void* block : blocks) deallocate(block, "test");
  }).join();
  Counters before = counters();
  deallocate(allocate(200 * 1000), "test");
  EXPECT_EQ(counters().extensions, before.extensions);
  EXPECT_TRUE(is_valid());
}

TEST(Global, ThreadsWaitForTheLock) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([] {
      while (counters().heap_wait_ns == 0)
        for (int n = 0; n < 1000; ++n) deallocate(allocate(100), "test");
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(is_valid());
  EXPECT_EQ(usage().allocated, 0u);
}

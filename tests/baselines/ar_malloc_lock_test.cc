// The variant that the article compares with: one lock around everything.
#include <atomic>
#include <chrono>

#include "ar_malloc_support.h"

using namespace hm;
using namespace hm::ar_malloc;

namespace {

// True if the call ends only once the arena's lock is free.
bool waits_for_the_lock(const std::function<void()>& call) {
  std::atomic<bool> ended{false};
  std::thread caller;
  bool early;
  {
    LockGuard guard(arenas[0].lock());
    caller = std::thread([&] {
      call();
      ended = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    early = ended;
  }
  caller.join();
  return !early;
}

}  // namespace

TEST(GlobalLock, ThereAreOneArenaAndNoCacheWhateverTheOptionsSay) {
  setenv("AR_MALLOC_CACHE", "100", 1);
  start_with("5");
  EXPECT_EQ(arenas_in_use(), 1u);
  ar_malloc::free(allocate(100));
  EXPECT_EQ(cache.most, 0u);
  for (int i = 0; i < 3; ++i)
    on_thread([] { EXPECT_TRUE(is_in(allocate(100), arenas[0])); });
}

TEST(GlobalLock, EveryCallTakesIt) {
  for (size_t size : {size_t{16}, size_t{1000}, size_t{3000}}) {
    uint64_t locks = counted().locks;
    for (int i = 0; i < 10; ++i) ar_malloc::free(allocate(size));
    EXPECT_EQ(counted().locks, locks + 20);
  }
  EXPECT_EQ(counted().out, 30u) << "no batches";
}

TEST(GlobalLock, NothingStaysInACache) {
  std::vector<void*> blocks = allocate_many(1000, 64);
  free_all(blocks);
  EXPECT_EQ(usage().cached, 0u);
  EXPECT_EQ(counted().bytes_out, 0u);
  EXPECT_TRUE(is_valid());
}

TEST(GlobalLock, SmallBlocksWaitForIt) {
  void* block = allocate(100);
  EXPECT_TRUE(waits_for_the_lock([] { allocate(100); }));
  EXPECT_TRUE(waits_for_the_lock([=] { ar_malloc::free(block); }));
}

TEST(GlobalLock, LargeBlocksWaitForItToo) {
  void* block = allocate(kMiB);
  EXPECT_TRUE(waits_for_the_lock([] { allocate(kMiB); }));
  EXPECT_TRUE(waits_for_the_lock([=] { ar_malloc::free(block); }));
  void* huge = allocate(3 * kMiB);
  EXPECT_TRUE(waits_for_the_lock([=] { resize(huge, 8 * kMiB); }));
}

TEST(GlobalLock, ThreadsShareTheHeap) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (size_t i = 0; i < 300; ++i) {
        size_t size = 1 + i * 97 % 20000;
        auto* block = static_cast<char*>(allocate(size));
        block[0] = block[size - 1] = static_cast<char>(t);
        ASSERT_EQ(block[size - 1], t);
        ar_malloc::free(block);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(is_valid());
  EXPECT_EQ(usage().allocated, 0u);
}

// The checked library only: the state of every block is exact, also while it lies in a cache.
#include <csignal>
#include <tuple>

#include "api/allocator.h"
#include "support.h"

using namespace hm;

namespace {
auto aborted = testing::KilledBySignal(SIGABRT);
}

TEST(Checked, ABlockInACacheIsCached) {
  for (size_t size : {16, 64, 1000, 8192, 10000, 32768}) {
    void* block = hm_malloc(size);
    EXPECT_FALSE(find_block(block).state.is_cached());
    EXPECT_FALSE(find_block(block).state.is_free());
    hm_free(block);
    BlockState& state = find_block(block).state;
    EXPECT_TRUE(state.is_cached() || state.is_free()) << size;
    for (int i = 0; i < 3; ++i) hm_free(hm_malloc(size));
  }
}

TEST(Checked, EveryBlockThatWaitsIsCached) {
  std::vector<void*> blocks;
  for (int i = 0; i < 500; ++i) blocks.push_back(hm_malloc(48));
  for (void* block : blocks) hm_free(block);
  ClassIndex c = class_of(48);
  void** floor = my_heap()->caches[index_of(c)].bottom();
  size_t used = my_heap()->caches[index_of(c)].size();
  ASSERT_GT(used, 0u);
  for (size_t i = 1; i <= used; ++i) EXPECT_TRUE(find_block(floor[i]).state.is_cached()) << i;
}

TEST(Checked, ADoubleFreeIsCaughtWhileTheBlockIsInACache) {
  void* first = hm_malloc(64);
  void* second = hm_malloc(64);
  hm_free(first);
  hm_free(second);
  EXPECT_EXIT(hm_free(first), aborted, "^hmalloc: hm_free\\(0x[0-9a-f]+\\): double free");
  EXPECT_EXIT(std::ignore = hm_realloc(first, 10), aborted, "^hmalloc: hm_realloc\\(0x[0-9a-f]+\\): double free");
  EXPECT_EXIT((void)hm_usable_size(first), aborted, "double free");
}

TEST(Checked, ADoubleFreeByAnotherThreadIsCaught) {
  void* block = hm_malloc(64);
  hm_free(block);
  EXPECT_EXIT(test::on_thread([=] { hm_free(block); }), aborted, "double free");
}

TEST(Checked, NobodyGetsACacheInTheHand) {
  EXPECT_EQ(hm_cache_of(64), nullptr);
  EXPECT_EQ(hm_shared_cache_of(64), nullptr);
}

TEST(Checked, AWrongSizeIsCaught) {
  void* block = hm_shared_alloc(64);
  EXPECT_EXIT(hm_shared_free_sized(block, 65), aborted, "freed with a size it was not allocated with");
  hm_shared_free_sized(block, 40);  // the same class: a right answer
  block = hm_malloc(64);
  EXPECT_EXIT(hm_free_sized(block, 65), aborted, "freed with a size it was not allocated with");
  hm_free_sized(block, 64);
}

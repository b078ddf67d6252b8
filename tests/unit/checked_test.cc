// The checked library only: the state of every block is exact, also while it lies in a cache.
#include <csignal>
#include <tuple>

#include "support.h"

using namespace hm;
using namespace hm::test;

namespace {

auto aborted = testing::KilledBySignal(SIGABRT);
constexpr char kWrongSize[] = "freed with a size it was not allocated with";

}  // namespace

TEST(Checked, ABlockInACacheIsCached) {
  for (size_t size : {16, 64, 1000, 8192, 10000, 32768}) {
    void* block = hm_malloc(size);
    BlockState& state = find_block(block).state;
    EXPECT_FALSE(state.is_cached() || state.is_free());
    hm_free(block);
    EXPECT_TRUE(state.is_cached() || state.is_free()) << size;
  }
}

TEST(Checked, EveryBlockThatWaitsIsCached) {
  free_all(allocate_many(500, 48));
  BlockCache& cache = my_heap()->caches[index_of(class_of(48))];
  ASSERT_GT(cache.size(), 0u);
  for (size_t i = 1; i <= cache.size(); ++i) EXPECT_TRUE(find_block(cache.bottom()[i]).state.is_cached()) << i;
}

TEST(Checked, ADoubleFreeIsCaughtWhileTheBlockIsInACache) {
  void *first = hm_malloc(64), *second = hm_malloc(64);
  hm_free(first);
  hm_free(second);
  EXPECT_EXIT(hm_free(first), aborted, "^hmalloc: hm_free\\(0x[0-9a-f]+\\): double free");
  EXPECT_EXIT(std::ignore = hm_realloc(first, 10), aborted, "^hmalloc: hm_realloc\\(0x[0-9a-f]+\\): double free");
  EXPECT_EXIT((void)hm_usable_size(first), aborted, "double free");
  EXPECT_EXIT(on_thread([=] { hm_free(second); }), aborted, "double free");
}

TEST(Checked, NobodyGetsACacheInTheHand) {
  EXPECT_EQ(hm_cache_of(64), nullptr);
  EXPECT_EQ(hm_shared_cache_of(64), nullptr);
}

TEST(Checked, AWrongSizeIsCaught) {
  void *shared = hm_shared_alloc(64), *block = hm_malloc(64);
  EXPECT_EXIT(hm_shared_free_sized(shared, 65), aborted, kWrongSize);
  hm_shared_free_sized(shared, 40);  // the same class: a right answer
  EXPECT_EXIT(hm_free_sized(block, 65), aborted, kWrongSize);
  hm_free_sized(block, 64);
}

// Local blocks, as programs have them inline.
#include <hmalloc/hmalloc_local.h>

#include <csignal>

#include "support.h"

using namespace hm;
using namespace hm::test;

namespace {

constexpr size_t kSizes[] = {0, 1, 16, 17, 100, 128, 129, 144, 160, 1000, 4000, 4096, 4097, 30'000, 40'000, 3 * kMiB};

size_t unknown(size_t size) {
  asm volatile("" : "+r"(size));
  return size;
}
size_t offset_of_cache(hm_cache* cache) { return address_of(cache) - address_of(my_heap()); }

TEST(Local, TheClassOfASizeIsTheAllocators) {
  for (size_t size = 1; size <= HM_LOCAL_MAX; ++size) {
    ASSERT_EQ(hm_local_class_(size), index_of(class_of(size))) << size;
    ASSERT_EQ(hm_local_offsets_.by_granules[(size - 1) / 16], kCacheOffset[(size - 1) / kGranule] + kCacheStride) << size;
  }
}

TEST(Local, AKnownSizeHasTheSameCache) {
  if (kChecked) GTEST_SKIP() << "the checked library has none";
  hm_free(hm_malloc(1));
  EXPECT_EQ(offset_of_cache(hm_local_cache_(1)), kCacheOffset[0]);
  EXPECT_EQ(hm_local_cache_(100), hm_local_cache_(unknown(100)));
  EXPECT_EQ(hm_local_cache_(128), hm_local_cache_(unknown(128)));
  EXPECT_EQ(hm_local_cache_(129), hm_local_cache_(unknown(129)));
  EXPECT_EQ(hm_local_cache_(HM_LOCAL_MAX), hm_local_cache_(unknown(HM_LOCAL_MAX)));
  EXPECT_EQ(hm_local_cache_(HM_LOCAL_MAX + 1), nullptr);
  EXPECT_EQ(hm_local_cache_(0), nullptr);
}

// As a program's copy of the table says before the program has been relocated.
TEST(Local, ZeroIsWhereACacheIsThatNeverHasABlock) {
  if (kChecked) GTEST_SKIP() << "the checked library has none";
  hm_free(hm_malloc(1));
  auto* none = reinterpret_cast<hm_cache*>(hm_local_caches_);
  EXPECT_EQ(*none->top, nullptr);
  EXPECT_GE(none->top, none->limit);
}

TEST(Local, WhatWasFreedLastIsNext) {
  void *first = hm_local_alloc(100), *second = hm_local_alloc(unknown(100));
  EXPECT_NE(first, second);
  hm_local_free_sized(first, unknown(100));
  EXPECT_EQ(hm_local_alloc(100), first);
  hm_local_free_sized(first, 100);
  EXPECT_EQ(hm_malloc(100), first) << "an ordinary block";
  hm_free(first);
  hm_local_free(second);
  EXPECT_EQ(hm_local_alloc(unknown(100)), second);
  hm_free(second);
}

TEST(Local, AnySizeWillDo) {
  size_t before = allocated_after_collect();
  for (size_t size : kSizes) {
    void* block = hm_local_alloc(size);
    ASSERT_NE(block, nullptr) << size;
    EXPECT_GE(hm_local_usable_size(block), size);
    fill(block, size, 1);
    hm_local_free_sized(block, size);
    hm_local_free_sized(nullptr, size);
    hm_local_free(nullptr);
    EXPECT_NE(block = hm_local_alloc(size), nullptr) << "null was not cached";
    hm_local_free(block);
  }
  EXPECT_EQ(allocated_after_collect(), before);
  EXPECT_EQ(hm_local_alloc(unknown(SIZE_MAX)), nullptr);
}

TEST(Local, MayBeFreedWithTheSizeOfARealloc) {
  size_t before = allocated_after_collect();
  for (size_t from : kSizes)
    for (size_t to : kSizes) {
      void* block = hm_local_alloc(from);
      fill(block, from, 1);
      block = hm_local_realloc(block, to);
      if (to == 0) continue;
      ASSERT_NE(block, nullptr);
      if (std::min(from, to) >= 64) { EXPECT_TRUE(matches(block, 64, 1)); }
      hm_local_free_sized(block, to);
      ASSERT_TRUE(everything_is_valid()) << from << " to " << to;
    }
  EXPECT_EQ(allocated_after_collect(), before);
}

// Not all that is as large as the blocks of a class is one of them.
TEST(Local, AnAlignedBlockMayBeFreedWithTheSizeOfARealloc) {
  for (size_t size : {16, 4096, 32768}) {
    void* aligned = hm_aligned_alloc(2 * kSlice, size);
    void* block = hm_local_realloc(aligned, size);
    hm_local_free_sized(block, size);
    void* again = hm_local_alloc(size);
    EXPECT_EQ(again, block) << "of the cache";
    EXPECT_NE(again, aligned);
    hm_local_free_sized(again, size);
    hm_collect();
    EXPECT_TRUE(everything_is_valid()) << size;
  }
}

TEST(Local, BlocksInRandomUseKeepTheirContents) {
  size_t before = allocated_after_collect();
  RandomUse use{.allocate = [](size_t size) { return hm_local_alloc(size); },
                .reallocate = hm_local_realloc,
                .release = hm_local_free,
                .size = [](uint32_t random) -> size_t { return random % 50 == 0 ? random / 50 % 100000 : random % 5000; }};
  use_at_random(use, 1500, 30000);
  EXPECT_EQ(allocated_after_collect(), before);
}

TEST(Local, MoreThanACacheHoldsGoesBack) {
  size_t before = allocated_after_collect();
  std::vector<void*> blocks;
  for (unsigned i = 0; i < 100'000; ++i) fill(blocks.emplace_back(hm_local_alloc(48)), 48, i);
  for (unsigned i = 0; i < blocks.size(); ++i) {
    ASSERT_TRUE(matches(blocks[i], 48, i));
    hm_local_free_sized(blocks[i], 48);
  }
  EXPECT_EQ(allocated_after_collect(), before);
  EXPECT_TRUE(everything_is_valid());
}

TEST(Local, OfAClassThatIsNotInUseAnyMore) {
  void *one = hm_local_alloc(300), *other = hm_shared_alloc(300);
  hm_collect();
  hm_local_free_sized(one, 300);
  hm_shared_free_sized(other, 300);
  EXPECT_TRUE(everything_is_valid());
  EXPECT_EQ(allocated_after_collect(), 0u);
}

TEST(Local, AThreadWithoutAHeapFreesAndAllocates) {
  size_t before = allocated_after_collect();
  void* block = hm_local_alloc(200);
  on_thread([&] {
    EXPECT_EQ(hm_local_caches_, nullptr);
    hm_local_free_sized(block, 200);
    EXPECT_FALSE(have_heap()) << "a free needs none";
    hm_local_free(hm_local_alloc(200));
    EXPECT_TRUE(have_heap());
    EXPECT_EQ(hm_local_caches_ == nullptr, kChecked);
    hm_thread_idle();
    EXPECT_EQ(hm_local_caches_, nullptr);
    hm_local_free_sized(hm_local_alloc(200), 200);
  });
  EXPECT_EQ(allocated_after_collect(), before);
}

TEST(Local, OneThatIsFreedTwiceEndsTheProgram) {
  void* block = hm_local_alloc(100);
  EXPECT_EXIT((hm_local_free_sized(block, 100), hm_local_free_sized(block, 100)), testing::KilledBySignal(SIGABRT),
              "double free");
  hm_local_free(block);
}

}  // namespace

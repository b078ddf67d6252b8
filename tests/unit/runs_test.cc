#include "large/runs.h"

#include "api/allocator.h"
#include "base/os_pages.h"
#include "pages/options.h"
#include "pages/slice_pool.h"
#include "support.h"
#include "threads/thread_heap.h"

using namespace hm;
using namespace hm::test;

namespace {

Superblock& run_of(void* block) { return Superblock::of(address_of(block)); }

// Many small blocks, all freed: their slices stay resident.
void pass_small_blocks(size_t bytes) {
  options.retain_bytes = SIZE_MAX / 2;
  std::vector<void*> blocks(bytes / 208);
  for (void*& block : blocks) block = hm_malloc(200);
  for (void* block : blocks) hm_free(block);
}
size_t resident_and_free() { return slice_pool.gauges().dirty_slices * kSlice; }

}  // namespace

TEST(Large, RunsOfSlices) {
  std::vector<std::pair<void*, size_t>> blocks;
  for (size_t size : {kSmallMax + 1, 2 * kSlice, 2 * kSlice + 1, 10 * kSlice, kLargeMax}) {
    void* block = hm_malloc(size);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(kind_of(block), ChunkKind::kSlices);
    EXPECT_EQ(run_of(block).kind(), SliceKind::kLarge);
    EXPECT_EQ(hm_usable_size(block), align_up(size, kSlice));
    test::fill(block, hm_usable_size(block), 5);
    blocks.emplace_back(block, size);
  }
  for (auto& [block, size] : blocks) EXPECT_TRUE(test::matches(block, hm_usable_size(block), 5)) << size;
  for (auto& [block, size] : blocks) hm_free(block);
  EXPECT_EQ(test::allocated_after_collect(), 0u);
}

TEST(Large, AFreedRunLeavesNoDescriptorBehind) {
  void* block = hm_malloc(10 * kSlice);
  Superblock& first = run_of(block);
  hm_free(block);
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ((&first)[i].kind(), SliceKind::kUnused);
}

TEST(Large, RunsGrowAndShrinkInPlace) {
  void* block = hm_malloc(4 * kSlice);
  test::fill(block, 4 * kSlice, 9);
  ASSERT_EQ(hm_realloc(block, 8 * kSlice - 5), block) << "nothing lies behind it";
  EXPECT_EQ(hm_usable_size(block), 8 * kSlice);
  EXPECT_TRUE(test::matches(block, 4 * kSlice, 9));
  ASSERT_EQ(hm_realloc(block, 2 * kSlice), block);
  EXPECT_EQ(hm_usable_size(block), 2 * kSlice);
  EXPECT_EQ(run_of(static_cast<char*>(block) + 2 * kSlice).kind(), SliceKind::kUnused);
  void* other = hm_malloc(2 * kSlice);
  void* moved = hm_realloc(block, 3 * kSlice);
  EXPECT_TRUE(test::matches(moved, 2 * kSlice, 9));
  hm_free(moved);
  hm_free(other);
  EXPECT_EQ(test::allocated_after_collect(), 0u);
}

TEST(Large, TheGrownPartHasDescriptors) {
  void* block = hm_malloc(3 * kSlice);
  ASSERT_EQ(hm_realloc(block, 6 * kSlice), block);
  for (size_t i = 1; i < 6; ++i) {
    Superblock& slice = (&run_of(block))[i];
    EXPECT_EQ(slice.kind(), SliceKind::kLargeTail);
  }
  hm_free(block);
}

TEST(Large, AlignmentsUpTo64MegabytesWithEverySize) {
  for (size_t alignment = 16; alignment <= 64 * kMiB; alignment *= 2)
    for (size_t size : {size_t{2}, size_t{5000}, size_t{100000}, kMiB + 1, 3 * kMiB}) {
      void* block = hm_aligned_alloc(alignment, size);
      ASSERT_NE(block, nullptr);
      ASSERT_EQ(address_of(block) % alignment, 0u);
      ASSERT_GE(hm_usable_size(block), size);
      mark_ends(block, size);
      void* grown = hm_realloc(block, size + size / 2 + 1);
      ASSERT_EQ(static_cast<char*>(grown)[0], 'a');
      ASSERT_EQ(static_cast<char*>(grown)[size - 1], 'z');
      hm_free(grown);
    }
  EXPECT_EQ(test::allocated_after_collect(), 0u);
  EXPECT_EQ(huge_gauges().blocks, 0u);
}

TEST(Large, ImpossibleSizesAreRefused) {
  for (size_t size : {SIZE_MAX, SIZE_MAX / 2, size_t{PTRDIFF_MAX}, size_t{1} << 60, SIZE_MAX - kSlice}) {
    errno = 0;
    EXPECT_EQ(hm_malloc(size), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(hm_aligned_alloc(8 * kMiB, size), nullptr);
  }
  EXPECT_EQ(hm_aligned_alloc(size_t{1} << 62, 1), nullptr);
}

// A thread's next request of a length is served by the run that it freed last, and to everybody else that is free.
// A fuzzer's: rounded up to slices, the last sizes there are became no slices at all, and the block was given back.
TEST(Large, ARunStaysWhenItCannotGrowBeyondAllMemory) {
  volatile size_t most = SIZE_MAX;
  for (size_t less : {size_t{0}, size_t{100}, kSlice - 2, kSlice - 1, kSlice, kChunk}) {
    void* block = hm_malloc(4 * kSlice);
    fill(block, 4 * kSlice, 3);
    EXPECT_EQ(hm_realloc(block, most - less), nullptr) << less;
    EXPECT_EQ(errno, ENOMEM);
    ASSERT_EQ(run_of(block).kind(), SliceKind::kLarge);
    EXPECT_EQ(hm_usable_size(block), 4 * kSlice);
    EXPECT_TRUE(matches(block, 4 * kSlice, 3));
    hm_free(block);
  }
}

TEST(Large, AFreedRunServesTheNextRequestOfItsLength) {
  test::on_thread([] {
    hm_free(hm_malloc(1));  // a heap
    char* block = static_cast<char*>(hm_malloc(4 * kSlice));
    ASSERT_NE(block, nullptr);
    hm_free(block);
    EXPECT_EQ(my_thread_heap().large.bytes(), 4 * kSlice);
    EXPECT_EQ(run_of(block).kind(), SliceKind::kUnused);
    void* other = hm_malloc(3 * kSlice);
    EXPECT_TRUE(other < block || other >= block + 4 * kSlice);
    EXPECT_EQ(hm_malloc(4 * kSlice), block);
    EXPECT_EQ(my_thread_heap().large.bytes(), 0u);
    EXPECT_EQ(hm_usable_size(block), 4 * kSlice);
    char* zeroed = static_cast<char*>(memset(block, 1, 4 * kSlice));
    hm_free(zeroed);
    zeroed = static_cast<char*>(hm_calloc(4, kSlice));
    EXPECT_EQ(zeroed, block);
    EXPECT_TRUE(test::is_zero(zeroed, 4 * kSlice));
    hm_free(zeroed);
    hm_free(other);
  });
  EXPECT_EQ(test::allocated_after_collect(), 0u);
}

TEST(Large, KeptRunsAreBoundedAndGoBackWhenTheyAreNotUsed) {
  test::on_thread([] {
    hm_free(hm_malloc(1));
    std::vector<void*> blocks;
    for (size_t slices : {2, 2, 2, 2, 2, 20}) blocks.push_back(hm_malloc(slices * kSlice));
    hm_free(blocks.back());
    EXPECT_EQ(my_thread_heap().large.bytes(), 0u) << "too long to be kept";
    blocks.pop_back();
    for (void* block : blocks) hm_free(block);
    EXPECT_EQ(my_thread_heap().large.bytes(), 8 * kSlice) << "four are kept";
    EXPECT_LE(my_thread_heap().large.bytes(), LargeCache::kMaxBytes);
    my_thread_heap().large.tick();
    EXPECT_EQ(my_thread_heap().large.bytes(), 8 * kSlice) << "used since the last tick";
    my_thread_heap().large.tick();
    EXPECT_EQ(my_thread_heap().large.bytes(), 0u);
  });
  EXPECT_EQ(test::allocated_after_collect(), 0u);
}

TEST(Large, KeptRunsAreNoLeak) {
  test::on_thread([] {
    hm_free(hm_malloc(1));
    hm_free(hm_malloc(2 * kSlice));
    hm_stats stats;
    hm_stats_get(&stats);
    EXPECT_EQ(stats.allocated, 0u);
    EXPECT_GE(stats.cached, 2 * kSlice);
    my_thread_heap().drain();
    EXPECT_EQ(my_thread_heap().large.bytes(), 0u);
  });
}

TEST(Large, RunsTakeThePlaceOfFreedSuperblocks) {
  pass_small_blocks(32 * kMiB);
  size_t chunks = slice_pool.chunks();
  std::vector<void*> runs(28);
  for (void*& run : runs) run = hm_malloc(kLargeMax);
  EXPECT_LE(slice_pool.chunks(), chunks + 4) << "fourteen would be all new";
  for (void* run : runs) hm_free(run);
}

TEST(Large, AHugeBlockTakesThePlaceOfFreeSlices) {
  hm_collect();
  pass_small_blocks(64 * kMiB);
  void* first = hm_malloc(8 * kMiB);  // the footprint has grown: the pool is looked through
  size_t before = resident_and_free();
  EXPECT_GT(before, 40 * kMiB);
  void* second = hm_malloc(8 * kMiB);
  EXPECT_LE(resident_and_free(), before - 8 * kMiB);
  EXPECT_GE(resident_and_free(), before - 8 * kMiB - kChunk) << "no more than that";
  hm_free(first);
  hm_free(second);
}

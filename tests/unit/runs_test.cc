#include "large/runs.h"

#include <cerrno>

#include "pages/footprint.h"
#include "pages/options.h"
#include "support.h"

using namespace hm;
using namespace hm::test;

namespace {

struct Large : NothingIsLost {
  void SetUp() override {
    options.decay_ms = 60'000;  // however busy the machine is
    hm_free(hm_malloc(1));      // a heap
  }
};

Superblock& run_of(void* block) { return Superblock::of(address_of(block)); }
size_t kept_bytes() { return my_thread_heap().large.bytes(); }
char* allocate_slices(size_t n) { return static_cast<char*>(hm_malloc(n * kSlice)); }

// Many small blocks, all freed: their slices stay resident.
void pass_small_blocks(size_t bytes) {
  options.retain_bytes = SIZE_MAX / 2;
  free_all(allocate_many(bytes / 208, 200));
}
size_t resident_and_free() { return slice_pool.gauges().dirty_slices * kSlice; }

}  // namespace

TEST_F(Large, RunsOfSlices) {
  std::vector<void*> blocks;
  for (size_t size : {kSmallMax + 1, 2 * kSlice, 2 * kSlice + 1, 10 * kSlice, kLargeMax}) {
    void* block = hm_malloc(size);
    EXPECT_EQ(kind_of(block), ChunkKind::kSlices);
    EXPECT_EQ(run_of(block).kind(), SliceKind::kLarge);
    EXPECT_EQ(hm_usable_size(block), align_up(size, kSlice));
    fill(block, hm_usable_size(block), 5);
    blocks.push_back(block);
  }
  for (void* block : blocks) EXPECT_TRUE(matches(block, hm_usable_size(block), 5)) << hm_usable_size(block);
  free_all(blocks);
}

TEST_F(Large, EachSliceOfARunSaysSo) {
  void* block = allocate_slices(6);
  ASSERT_EQ(hm_realloc(block, 12 * kSlice), block);
  Superblock* slices = &run_of(block);
  for (size_t i = 0; i < 12; ++i) EXPECT_EQ(slices[i].kind(), i == 0 ? SliceKind::kLarge : SliceKind::kLargeTail);
  hm_free(block);
  EXPECT_EQ(slices[0].kind(), SliceKind::kUnused);
}

TEST_F(Large, RunsGrowAndShrinkInPlace) {
  void* block = allocate_slices(4);
  fill(block, 4 * kSlice, 9);
  ASSERT_EQ(hm_realloc(block, 8 * kSlice - 5), block) << "nothing lies behind it";
  EXPECT_EQ(hm_usable_size(block), 8 * kSlice);
  EXPECT_TRUE(matches(block, 4 * kSlice, 9));
  ASSERT_EQ(hm_realloc(block, 2 * kSlice), block);
  EXPECT_EQ(hm_usable_size(block), 2 * kSlice);
  void *other = allocate_slices(2), *moved = hm_realloc(block, 3 * kSlice);
  EXPECT_TRUE(matches(moved, 2 * kSlice, 9));
  hm_free(moved);
  hm_free(other);
}

// A fuzzer's: rounded up to slices, the last sizes there are became no slices at all, and the block was given back.
TEST_F(Large, ARunStaysWhenItCannotGrowBeyondAllMemory) {
  volatile size_t most = SIZE_MAX;
  for (size_t less : {size_t{0}, size_t{100}, kSlice - 2, kSlice - 1, kSlice, kChunk}) {
    void* block = allocate_slices(4);
    fill(block, 4 * kSlice, 3);
    EXPECT_EQ(hm_realloc(block, most - less), nullptr) << less;
    EXPECT_EQ(errno, ENOMEM);
    ASSERT_EQ(run_of(block).kind(), SliceKind::kLarge);
    EXPECT_EQ(hm_usable_size(block), 4 * kSlice);
    EXPECT_TRUE(matches(block, 4 * kSlice, 3));
    hm_free(block);
  }
}

// A thread's next request of a length is served by the run that it freed last, and to everybody else that is free.
TEST_F(Large, AFreedRunServesTheNextRequestOfItsLength) {
  char* block = allocate_slices(4);
  hm_free(memset(block, 1, 4 * kSlice));
  EXPECT_EQ(kept_bytes(), 4 * kSlice);
  EXPECT_EQ(stats_now().allocated, 0u);
  EXPECT_GE(stats_now().cached, 4 * kSlice);
  EXPECT_EQ(run_of(block).kind(), SliceKind::kUnused);
  char* other = allocate_slices(3);
  EXPECT_TRUE(other < block || other >= block + 4 * kSlice);
  EXPECT_EQ(hm_calloc(4, kSlice), block);
  EXPECT_TRUE(is_zero(block, 4 * kSlice));
  EXPECT_EQ(kept_bytes(), 0u);
  hm_free(block);
  EXPECT_EQ(allocate_slices(4), block);
  EXPECT_EQ(hm_usable_size(block), 4 * kSlice);
  hm_free(block);
  hm_free(other);
}

TEST_F(Large, KeptRunsAreBoundedAndGoBackWhenTheyAreNotUsed) {
  auto blocks = allocate_many(9, 2 * kSlice);
  hm_free(allocate_slices(20));
  EXPECT_EQ(kept_bytes(), 0u) << "too long to be kept";
  free_all(blocks);
  EXPECT_EQ(kept_bytes(), LargeCache::kMaxBytes) << "eight are kept";
  my_thread_heap().large.tick();
  EXPECT_EQ(kept_bytes(), LargeCache::kMaxBytes) << "used since the last tick";
  my_thread_heap().large.tick();
  EXPECT_EQ(kept_bytes(), 0u);
  hm_free(allocate_slices(2));
  my_thread_heap().drain();
  EXPECT_EQ(kept_bytes(), 0u);
}

// Blocks of other lengths lie between.
TEST_F(Large, EachLengthIsKept) {
  std::vector<void*> blocks;
  for (size_t slices : {2, 5, 3, 2, 4}) blocks.push_back(allocate_slices(slices));
  for (void* block : blocks) hm_free(block);
  EXPECT_EQ(kept_bytes(), 16 * kSlice);
  EXPECT_EQ(allocate_slices(3), blocks[2]);
  EXPECT_EQ(allocate_slices(2), blocks[3]) << "the one freed last";
  EXPECT_EQ(allocate_slices(2), blocks[0]);
  EXPECT_EQ(allocate_slices(4), blocks[4]);
  EXPECT_EQ(kept_bytes(), 5 * kSlice);
  EXPECT_EQ(allocate_slices(5), blocks[1]);
  EXPECT_EQ(kept_bytes(), 0u);
  free_all(blocks);
}

TEST_F(Large, WithManyHeapsEachKeepsFewerRuns) {
  size_t heaps = footprint.heaps();
  footprint.set_heaps(192);
  free_all(allocate_many(2, 2 * kSlice));
  EXPECT_EQ(kept_bytes(), 2 * kSlice);
  footprint.set_heaps(heaps);
}

TEST_F(Large, RunsTakeThePlaceOfFreedSuperblocks) {
  pass_small_blocks(32 * kMiB);
  size_t chunks = slice_pool.chunks();
  auto runs = allocate_many(28, kLargeMax);
  EXPECT_LE(slice_pool.chunks(), chunks + 4) << "fourteen would be all new";
  free_all(runs);
}

TEST_F(Large, AHugeBlockTakesThePlaceOfFreeSlices) {
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

#include "api/allocator.h"

#include <cerrno>

#include "support.h"

using namespace hm;
using namespace hm::test;

namespace {

// Around every boundary between classes and kinds.
std::vector<size_t> boundary_sizes() {
  std::vector<size_t> sizes{1, 2, 15, 16, 17, 100};
  for (size_t edge : {size_t{128}, size_t{1024}, size_t{8192}, kSmallMax, kSlice, 5 * kSlice, kLargeMax, kChunk})
    for (size_t size : {edge - 1, edge, edge + 1}) sizes.push_back(size);
  return sizes;
}

// What succeeds leaves errno alone, a collection too.
struct Allocator : NothingIsLost {
  void SetUp() override { errno = 4242; }
  void TearDown() override {
    hm_collect();
    EXPECT_EQ(errno, 4242);
    NothingIsLost::TearDown();
  }
  static void expect_no_memory(const void* answer) {
    EXPECT_EQ(answer, nullptr);
    EXPECT_EQ(std::exchange(errno, 4242), ENOMEM);
  }
};

}  // namespace

TEST_F(Allocator, EverySizeIsAlignedUsableAndItsOwn) {
  std::vector<void*> blocks;
  for (size_t size = 0; size <= 40000; size += size < 600 ? 1 : 97) {
    void* block = hm_malloc(size);
    ASSERT_NE(block, nullptr);
    ASSERT_EQ(address_of(block) % 16, 0u);
    ASSERT_GE(hm_usable_size(block), size);
    fill(block, hm_usable_size(block), static_cast<unsigned>(blocks.size()));
    blocks.push_back(block);
  }
  for (size_t i = 0; i < blocks.size(); ++i)
    ASSERT_TRUE(matches(blocks[i], hm_usable_size(blocks[i]), static_cast<unsigned>(i))) << i;
  free_all(blocks);
}

TEST_F(Allocator, ReallocBetweenEveryTwoKinds) {
  for (size_t from : boundary_sizes())
    for (size_t to : boundary_sizes()) {
      void* block = hm_malloc(from);
      fill(block, from, 42);
      char* other = static_cast<char*>(hm_realloc(block, to));
      ASSERT_TRUE(matches(other, std::min(from, to), 42)) << from << " -> " << to;
      ASSERT_GE(hm_usable_size(other), to);
      other[to - 1] = 1;
      hm_free(other);
    }
}

TEST_F(Allocator, AFailedReallocLeavesTheBlock) {
  for (size_t size : {size_t{100}, 3 * kSlice, 2 * kMiB}) {
    void* block = hm_malloc(size);
    fill(block, size, 8);
    expect_no_memory(hm_realloc(block, SIZE_MAX / 2));
    EXPECT_TRUE(matches(block, size, 8));
    hm_free(block);
  }
}

TEST_F(Allocator, CallocIsZeroAfterDirtyFrees) {
  for (size_t size : boundary_sizes())
    for (int round = 0; round < 3; ++round) {
      void* block = hm_calloc(1, size);
      ASSERT_TRUE(is_zero(block, size)) << size << " round " << round;
      memset(block, 0xff, hm_usable_size(block));
      hm_free(block);
      if (round == 1) hm_collect();
    }
}

// A run over slices of which some are fresh and some were freed dirty.
TEST_F(Allocator, CallocOverADirtyRunIsZero) {
  hm_free(memset(hm_malloc(3 * kSlice), 0xff, 3 * kSlice));
  void* block = hm_calloc(1, 6 * kSlice);
  EXPECT_TRUE(is_zero(block, 6 * kSlice));
  hm_free(block);
}

TEST_F(Allocator, EveryAlignmentWithEverySize) {
  for (size_t alignment = 1; alignment <= 64 * kMiB; alignment *= 2)
    for (size_t size : boundary_sizes()) {
      char* block = static_cast<char*>(hm_aligned_alloc(alignment, size));
      ASSERT_NE(block, nullptr);
      ASSERT_EQ(address_of(block) % std::max<size_t>(alignment, 16), 0u);
      ASSERT_GE(hm_usable_size(block), size);
      block[0] = block[size - 1] = 'a';
      block = static_cast<char*>(hm_realloc(block, size + size / 2 + 1));
      ASSERT_TRUE(block[0] == 'a' && block[size - 1] == 'a');
      hm_free(block);
    }
}

TEST_F(Allocator, ImpossibleSizesAreRefused) {
  for (volatile size_t size : {SIZE_MAX, SIZE_MAX / 2, size_t{PTRDIFF_MAX}, size_t{1} << 60, SIZE_MAX - kSlice}) {
    expect_no_memory(hm_malloc(size));
    expect_no_memory(hm_aligned_alloc(8 * kMiB, size));
  }
  expect_no_memory(hm_aligned_alloc(size_t{1} << 62, 1));
}

TEST_F(Allocator, BlocksInRandomUseKeepTheirContents) {
  static unsigned n = 0;
  RandomUse use{
      .allocate =
          [](size_t size) { return ++n % 8 != 0 ? hm_malloc(size) : hm_aligned_alloc(size_t{16} << n / 8 % 6, size); },
      .reallocate = hm_realloc,
      .release = hm_free,
      .size = [](uint32_t random) -> size_t { return random % 50 == 0 ? random / 50 % 100000 : random % 400; }};
  use_at_random(use, 1500, 60000);
}

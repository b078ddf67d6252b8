// Large blocks with a mapping of their own.
#include "large_blocks_support.h"

using namespace hm;
using namespace hm::test;

TEST(LargeMappings, AFarBlockIsTheOnlyStartInItsMapping) {
  char* block = get(2 * kMiB, 8 * kMiB);
  EXPECT_EQ(kind_of(block), ChunkKind::kHugeAligned);
  EXPECT_EQ(kind_of(block - kChunk), ChunkKind::kHuge);
  EXPECT_DEATH(large.free(block - kChunk + kLine, "free"), "not a block");
  EXPECT_DEATH(large.free(block + kLine, "free"), "not a block");
  EXPECT_EQ(large.resize(block, 9 * kMiB), nullptr) << "it would lose its alignment";
  large.free(block, "free");
  EXPECT_EQ(kind_of(block), ChunkKind::kForeign);
  EXPECT_EQ(kind_of(block - kChunk), ChunkKind::kForeign);
}

TEST(LargeMappings, AreResizedWithTheirContents) {
  size_t size = 2 * kMiB;
  char* block = get(size);
  mark_ends(block, size);
  for (int i = 0; i < 6; ++i) {
    char* blocker = get(2 * kMiB);  // often behind the block, so that it must move
    size_t bigger = size + size / 2;
    char* old = block;
    block = static_cast<char*>(large.resize(block, bigger));
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(LargeBlocks::holds(old), old == block);
    ASSERT_EQ(block[0], 'a');
    ASSERT_EQ(block[size - 1], 'z');
    ASSERT_TRUE(is_zero(block + usable(block) - 1000, 1000)) << "pages that are new";
    ASSERT_GE(usable(block), bigger);
    size = bigger;
    mark_ends(block, size);
    large.free(blocker, "free");
  }
  EXPECT_EQ(large.resize(block, 2 * kMiB), block);
  EXPECT_LT(usable(block), 2 * kMiB + os::page_size());
  EXPECT_EQ(large.resize(block, kMiB), nullptr) << "a size for a run";
  EXPECT_EQ(block[0], 'a');
  EXPECT_EQ(large.resize(get(kMiB), 2 * kMiB), nullptr) << "runs stay";
  large.free(block, "free");
  EXPECT_TRUE(large.is_valid());
}

TEST(LargeMappings, AnAlignedMappingStaysAlignedWhenItGrows) {
  char* block = get(2 * kMiB, 64 * kKiB);
  for (size_t size = 3 * kMiB; size < 30 * kMiB; size *= 2) {
    char* blocker = get(2 * kMiB);
    block = static_cast<char*>(large.resize(block, size));
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(address_of(block) % (64 * kKiB), 0u);
    large.free(blocker, "free");
  }
}

TEST(LargeMappings, AKeptMappingServesWhatIsAtLeastHalfAsLargeTheBestFirst) {
  char* ten = get(10 * kMiB, kGranule, keeping);
  char* six = get(6 * kMiB, kGranule, keeping);
  for (int i = 0; i < 2; ++i) {  // in either order
    keeping.free(i == 0 ? six : ten, "free");
    keeping.free(i == 0 ? ten : six, "free");
    EXPECT_EQ(get(11 * kMiB / 2, kGranule, keeping), six);
    EXPECT_EQ(get(9 * kMiB, kGranule, keeping), ten);
  }
  keeping.free(ten, "free");
  EXPECT_NE(get(4 * kMiB, kGranule, keeping), ten);
  EXPECT_EQ(get(7 * kMiB, kGranule, keeping), ten);
  EXPECT_EQ(keeping.resize(ten, 3 * kMiB), nullptr) << "to shrink it would be to return memory";
  EXPECT_TRUE(keeping.is_valid());
}

TEST(LargeMappings, AMappingDoesNotGrowWhereAKeptOneFits) {
  char* ten = get(10 * kMiB, kGranule, keeping);
  keeping.free(ten, "free");
  char* four = get(4 * kMiB, kGranule, keeping);
  EXPECT_EQ(keeping.resize(four, 9 * kMiB), nullptr) << "the caller finds the other";
  EXPECT_EQ(get(9 * kMiB, kGranule, keeping), ten);
  EXPECT_NE(keeping.resize(four, 9 * kMiB), nullptr);
}

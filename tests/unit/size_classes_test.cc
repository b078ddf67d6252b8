#include "base/size_classes.h"

#include "support.h"

using namespace hm;

TEST(SizeClasses, SmallestFittingClassIsChosen) {
  for (size_t size = 1; size <= kSmallMax; ++size) {
    size_t c = index_of(class_of(size));
    ASSERT_GE(kClassSize[c], size);
    if (c > 0) { ASSERT_LT(kClassSize[c - 1], size); }
  }
}

TEST(SizeClasses, WasteIsBounded) {
  for (size_t size = 1; size <= kSmallMax; ++size) {
    size_t got = size_of(class_of(size));
    ASSERT_LE(got - size, size <= 128 ? 15 : size / 4) << size;
  }
}

TEST(SizeClasses, APageWithAHeaderHasAClassOfItsOwn) {
  for (size_t page = 4 * kKiB; page < kSmallMax; page *= 2)
    for (size_t header : {size_t{1}, size_t{272}, page / 8}) EXPECT_EQ(size_of(class_of(page + header)), page + page / 8);
}

TEST(SizeClasses, BlocksFitTheirSuperblock) {
  for (ClassIndex c : test::all_classes()) {
    EXPECT_LE(blocks_of(c) * size_of(c), slices_of(c) * kSlice);
    EXPECT_GT((blocks_of(c) + 1) * size_of(c), slices_of(c) * kSlice);
    EXPECT_EQ(slices_of(c), size_of(c) <= kOneSliceMax ? 1u : 4u);
  }
}

TEST(SizeClasses, AlignedClassFitsAndAligns) {
  for (size_t alignment = 16; alignment <= kSmallMax; alignment *= 2)
    for (size_t size :
         {size_t{0}, size_t{1}, alignment - 1, alignment, alignment + 1, size_t{100}, size_t{5000}, kSmallMax}) {
      size_t c = aligned_class(size, alignment);
      if (size > kSmallMax) {
        EXPECT_EQ(c, kClasses);
        continue;
      }
      ASSERT_LT(c, kClasses) << "the largest class is a multiple of every such alignment";
      EXPECT_GE(kClassSize[c], size);
      EXPECT_EQ(kClassSize[c] % alignment, 0u);
    }
  EXPECT_EQ(aligned_class(kSmallMax + 1, 16), kClasses);
  EXPECT_EQ(aligned_class(1, 2 * kSmallMax), kClasses);
}

TEST(SizeClasses, SharedSizesAreWholeLinesAndFit) {
  for (size_t size = 1; size <= kSmallMax; ++size) {
    ASSERT_GE(shared_size(size), size);
    ASSERT_EQ(shared_size(size) % kLine, 0u);
  }
  EXPECT_EQ(shared_size(1), 64u);
  EXPECT_EQ(shared_size(65), 128u);
}

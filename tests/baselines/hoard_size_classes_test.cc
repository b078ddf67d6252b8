#include <memory>

#include "hoard_support.h"

using namespace hoard_test;

namespace {

struct Case {
  size_t superblock, base;
};
class HoardClasses : public testing::TestWithParam<Case> {
 protected:
  // What b allows after this size.
  static size_t next(size_t size) { return std::max(size * GetParam().base / kThousand, size + kGranule); }

  size_t room_ = GetParam().superblock - sizeof(Superblock);
  std::unique_ptr<SizeClasses> computed_ = std::make_unique<SizeClasses>();
};

}  // namespace

TEST_P(HoardClasses, AreAFactorOfBApart) {
  SizeClasses& all = *computed_;
  all.compute(room_, GetParam().base);
  ASSERT_EQ(all[0].size, kGranule);
  for (size_t c = 0; c < all.count(); ++c) {
    EXPECT_EQ(all[c].size % kGranule, 0u);
    EXPECT_EQ(all[c].blocks, room_ / all[c].size);
    if (c == 0) continue;
    EXPECT_GT(all[c].size, all[c - 1].size);
    EXPECT_LE(all[c].size, next(all[c - 1].size)) << "after " << all[c - 1].size;
    EXPECT_TRUE(c + 1 == all.count() || all[c].size + kGranule > next(all[c - 1].size)) << "b allows more";
  }
  EXPECT_EQ(all.largest(), align_down(room_ / 2, kGranule));
  EXPECT_GE(all[all.count() - 1].blocks, 2u);

  for (size_t size = 1; size <= all.largest(); ++size) {
    size_t c = all.of(size);  // the smallest that fits
    ASSERT_GE(all[c].size, size);
    ASSERT_TRUE(c == 0 || all[c - 1].size < size);
    for (size_t alignment : {32, 64})
      if (c = all.aligned(size, alignment); c != all.count()) {
        ASSERT_GE(all[c].size, size);
        ASSERT_EQ(all[c].size % alignment, 0u);
      }
  }
  EXPECT_EQ(all.aligned(all.largest() + 1, 64), all.count());
  EXPECT_EQ(all[all.aligned(64, 64)].size, 64u);
}

INSTANTIATE_TEST_SUITE_P(, HoardClasses,
                         testing::Values(Case{8192, 1200}, Case{4096, 1200}, Case{65536, 1200}, Case{8192, 1100},
                                         Case{8192, 1500}, Case{8192, 4000}, Case{kMaxSuperblock, 1100}),
                         [](const auto& of) {
                           return std::to_string(of.param.superblock) + "_" + std::to_string(of.param.base);
                         });

TEST(HoardClassesOfThePaper, AreAsTheChapterHasThem) {
  start_with({});
  EXPECT_EQ(classes.count(), 29u);
  EXPECT_EQ(classes.largest(), 4064u);
}

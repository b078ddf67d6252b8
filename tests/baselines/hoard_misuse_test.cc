// What Hoard can tell of bad pointers.
#include "hoard_support.h"

using namespace hoard_test;

namespace {

constexpr const char* kNotLive = "hoard: free.*no live block: freed already, or never allocated";

void free_it(void* block) { deallocate(block, "free"); }

}  // namespace

TEST(HoardMisuse, Foreign) {
  int here = 0;
  EXPECT_DEATH(free_it(&here), "hoard: free.*not a block of hoard");
  EXPECT_DEATH(usable_size(&here, "malloc_usable_size"), "malloc_usable_size.*not a block of hoard");
}

TEST(HoardMisuse, InsideABlockOrTheHeader) {
  auto* block = static_cast<char*>(allocate(100));
  EXPECT_DEATH(free_it(block + 8), "not the start of a block");
  EXPECT_DEATH(free_it(block + 16), "not the start of a block");
  EXPECT_DEATH(free_it(&superblock(block)), "not the start of a block");
  EXPECT_DEATH(free_it(reinterpret_cast<char*>(&superblock(block)) + options.superblock + kLine), "not the start")
      << "of a superblock that nobody has used";
}

TEST(HoardMisuse, NeverAllocated) {
  auto* block = static_cast<char*>(allocate(100));
  EXPECT_DEATH(free_it(block + usable_size(block, "test")), kNotLive);
}

TEST(HoardMisuse, FreedTwice) {
  void* block = allocate(100);
  void* other = allocate(100);
  free_it(block);
  EXPECT_DEATH(free_it(block), kNotLive) << "the last of its superblock";
  free_it(other);
  EXPECT_DEATH(free_it(block), kNotLive) << "the superblock is empty";
}

TEST(HoardMisuse, LargeTwice) {
  void* block = allocate(100'000);
  free_it(block);
  EXPECT_DEATH(free_it(block), "hoard: free");
}

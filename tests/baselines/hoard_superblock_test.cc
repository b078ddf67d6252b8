#include <algorithm>

#include "hoard_support.h"

using namespace hoard_test;

namespace {

class HoardSuperblock : public testing::Test {
 protected:
  void SetUp() override {
    start_with({});
    s_ = new (heaps.superblocks.take()) Superblock;
    s_->dedicate(classes.of(496));
  }
  void fill() {
    while (s_->in_use() < s_->blocks()) blocks_.push_back(s_->take_block());
  }
  Superblock* s_ = nullptr;
  std::vector<void*> blocks_;
};

}  // namespace

TEST_F(HoardSuperblock, HandsOutEachBlockOnceAndInOrder) {
  fill();
  EXPECT_TRUE(s_->is_valid());
  EXPECT_EQ(blocks_.size(), (options.superblock - kLine) / s_->block_size());
  EXPECT_EQ(address_of(blocks_[0]), address_of(s_) + kLine);
  for (size_t i = 1; i < blocks_.size(); ++i)
    EXPECT_EQ(address_of(blocks_[i]) - address_of(blocks_[i - 1]), s_->block_size());
  EXPECT_LE(address_of(blocks_.back()) + s_->block_size(), address_of(s_) + options.superblock);
}

TEST_F(HoardSuperblock, FreeListIsLifo) {
  fill();
  for (size_t i : {3, 7, 1}) s_->put_block(blocks_[i]);
  EXPECT_TRUE(s_->is_valid());
  for (size_t i : {1, 7, 3}) EXPECT_EQ(s_->take_block(), blocks_[i]);
}

TEST_F(HoardSuperblock, FreedBlocksComeBeforeFreshOnes) {
  void* first = s_->take_block();
  s_->take_block();
  s_->put_block(first);
  EXPECT_EQ(s_->take_block(), first);
  EXPECT_TRUE(s_->is_valid());
}

// With f = 1/4: full, then more and more free by quarters, the bound belonging to the fuller group; then empty.
TEST_F(HoardSuperblock, FullnessGroupsAreFWide) {
  size_t n = s_->blocks();
  fill();
  ASSERT_EQ(n % 4, 0u) << "the bounds fall on blocks";
  for (size_t free = 0; free <= n; ++free) {
    size_t expected = free == 0 ? kFull : free == n ? kEmpty : (free * 4 + n - 1) / n;
    EXPECT_EQ(s_->fullness_group(), expected) << free << " free of " << n;
    if (free < n) s_->put_block(blocks_[free]);
  }
}

TEST_F(HoardSuperblock, AnyFHasItsGroups) {
  for (size_t f : {100, 125, 300, 333, 500, 999, 1000}) {
    options.empty_fraction = f;
    fill();
    size_t before = s_->fullness_group();
    EXPECT_EQ(before, kFull);
    while (s_->in_use() > 0) {
      s_->put_block(blocks_.back());
      blocks_.pop_back();
      size_t free = s_->blocks() - s_->in_use(), group = s_->fullness_group();
      EXPECT_GE(group, before);
      EXPECT_LT(group, kGroups);
      EXPECT_EQ(group > kUpToF, free * kThousand > f * s_->blocks() || s_->in_use() == 0) << f << ", free " << free;
      before = group;
    }
    EXPECT_EQ(before, kEmpty);
  }
}

TEST_F(HoardSuperblock, IsRecycledForAnotherSize) {
  fill();
  for (void* block : blocks_) s_->put_block(block);
  s_->dedicate(classes.of(24));
  blocks_.clear();
  fill();
  EXPECT_TRUE(s_->is_valid());
  EXPECT_EQ(blocks_.size(), (options.superblock - kLine) / 32);
}

TEST_F(HoardSuperblock, KnowsWhereBlocksStart) {
  void* block = s_->take_block();
  auto* bytes = static_cast<char*>(block);
  EXPECT_TRUE(s_->may_start(block));
  EXPECT_FALSE(s_->may_start(bytes + 16));
  EXPECT_FALSE(s_->may_start(s_)) << "the header";
  EXPECT_FALSE(s_->may_start(bytes + s_->blocks() * s_->block_size())) << "past the last";
  EXPECT_FALSE(s_->may_be_live(bytes + s_->block_size())) << "not handed out yet";
  EXPECT_TRUE(s_->may_be_live(block));
  s_->take_block();
  s_->put_block(block);
  EXPECT_FALSE(s_->may_be_live(block)) << "freed last";
}

TEST_F(HoardSuperblock, IsValidFindsABrokenList) {
  fill();
  s_->put_block(blocks_[0]);
  s_->put_block(blocks_[1]);
  *static_cast<void**>(blocks_[1]) = blocks_[1];
  EXPECT_FALSE(s_->is_valid()) << "a cycle";
  *static_cast<void**>(blocks_[1]) = nullptr;
  EXPECT_FALSE(s_->is_valid()) << "a lost block";
  *static_cast<void**>(blocks_[1]) = static_cast<char*>(blocks_[0]) + 16;
  EXPECT_FALSE(s_->is_valid()) << "not a block";
}

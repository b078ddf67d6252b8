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
  void empty() {
    for (; !blocks_.empty(); blocks_.pop_back()) s_->put_block(blocks_.back());
  }
  Superblock* s_ = nullptr;
  std::vector<void*> blocks_;
};

}  // namespace

TEST_F(HoardSuperblock, HandsOutEachBlockOnceAndInOrder) {
  for (size_t size : {496, 24}) {  // and is recycled for another class
    s_->dedicate(classes.of(size));
    fill();
    EXPECT_TRUE(s_->is_valid());
    EXPECT_EQ(blocks_.size(), (options.superblock - kLine) / s_->block_size());
    for (size_t i = 0; i < blocks_.size(); ++i)
      EXPECT_EQ(address_of(blocks_[i]), address_of(s_) + kLine + i * s_->block_size());
    empty();
  }
}

TEST_F(HoardSuperblock, FreedBlocksComeLastInFirstOutAndBeforeFreshOnes) {
  for (int i = 0; i < 8; ++i) blocks_.push_back(s_->take_block());
  for (size_t i : {3, 7, 1}) s_->put_block(blocks_[i]);
  EXPECT_TRUE(s_->is_valid());
  for (size_t i : {1, 7, 3}) EXPECT_EQ(s_->take_block(), blocks_[i]);
  EXPECT_GT(s_->take_block(), blocks_.back());
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

TEST_F(HoardSuperblock, KnowsWhereBlocksStart) {
  auto* block = static_cast<char*>(s_->take_block());
  EXPECT_TRUE(s_->may_start(block));
  EXPECT_FALSE(s_->may_start(block + 16));
  EXPECT_FALSE(s_->may_start(s_)) << "the header";
  EXPECT_FALSE(s_->may_start(block + s_->blocks() * s_->block_size())) << "past the last";
  EXPECT_FALSE(s_->may_be_live(block + s_->block_size())) << "not handed out yet";
  EXPECT_TRUE(s_->may_be_live(block));
  s_->take_block();
  s_->put_block(block);
  EXPECT_FALSE(s_->may_be_live(block)) << "freed last";
}

TEST_F(HoardSuperblock, IsValidFindsABrokenList) {
  fill();
  s_->put_block(blocks_[0]);
  s_->put_block(blocks_[1]);
  void*& link = *static_cast<void**>(blocks_[1]);
  EXPECT_TRUE(s_->is_valid());
  for (void* bad : {blocks_[1], static_cast<void*>(nullptr), static_cast<void*>(static_cast<char*>(blocks_[0]) + 16)}) {
    link = bad;
    EXPECT_FALSE(s_->is_valid()) << "a cycle, a lost block, or not a block: " << bad;
  }
}

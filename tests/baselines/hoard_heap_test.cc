// Fullness groups and their order within one heap.
#include "hoard_support.h"

using namespace hoard_test;

namespace {

constexpr size_t kSize = 496, kBlocks = 16;  // in a superblock of 8 KB

class HoardHeap : public testing::Test {
 protected:
  void SetUp() override {
    start_with({{"HOARD_KEEP", "1000"}});  // nothing leaves the heap
    heap_ = heaps.of_this_thread();
    c_ = classes.of(kSize);
    ASSERT_EQ(blocks_of(kSize), kBlocks);
  }
  // So many superblocks, all full.
  void fill(size_t superblocks) {
    for (size_t i = 0; i < superblocks; ++i) {
      full_.push_back(get_many(kBlocks, kSize));
      for (void* block : full_[i]) ASSERT_EQ(&superblock(block), &at(i));
    }
  }
  void free_of(size_t i, size_t count) {
    for (; count > 0; --count, full_[i].pop_back()) give(full_[i].back());
  }
  Superblock& at(size_t i) { return superblock(full_[i][0]); }
  Heap* heap_ = nullptr;
  size_t c_ = 0;
  std::vector<std::vector<void*>> full_;
};

}  // namespace

TEST_F(HoardHeap, AllocatesFromTheFullest) {
  fill(3);
  free_of(0, 12);
  free_of(1, 1);
  free_of(2, 7);
  EXPECT_EQ(&superblock(get(kSize)), &at(1));
  EXPECT_EQ(&superblock(get(kSize)), &at(2)) << "1 is full again";
}

// With f = 1/4: full, then more and more free by quarters, the bound belonging to the fuller group; then empty.
TEST_F(HoardHeap, MovesSuperblocksBetweenGroups) {
  fill(1);
  Superblock& s = at(0);
  EXPECT_EQ(s.group(), kFull);
  EXPECT_EQ(heap_->fullest_with_space(c_), nullptr);
  for (size_t free = 1; free <= kBlocks; ++free) {
    give(full_[0].back());
    full_[0].pop_back();
    EXPECT_EQ(s.group(), free == kBlocks ? kEmpty : (free + 3) / 4) << free;
    EXPECT_EQ(heap_->fullest_with_space(c_), &s);
    EXPECT_EQ(heap_->emptiest(c_), free > 4 ? &s : nullptr) << "more than f empty or not";
    EXPECT_EQ(heap_->emptiest(), free > 4 ? &s : nullptr);
    EXPECT_EQ(heap_->completely_empty(), free == kBlocks ? &s : nullptr);
    EXPECT_TRUE(hoard::is_valid());
  }
  for (size_t free = kBlocks; free-- > 0;) {
    get(kSize);
    EXPECT_EQ(s.group(), free == 0 ? kFull : (free + 3) / 4) << free;
    EXPECT_TRUE(hoard::is_valid());
  }
}

TEST_F(HoardHeap, FreeMovesToTheFrontOfTheGroup) {
  fill(3);
  for (size_t i : {0, 1, 2}) free_of(i, 1);
  EXPECT_EQ(heap_->fullest_with_space(c_), &at(2));
  for (size_t i : {0, 1}) {
    free_of(i, 1);  // stays in its group
    EXPECT_EQ(at(i).group(), at(2).group());
    EXPECT_EQ(heap_->fullest_with_space(c_), &at(i));
  }
}

TEST_F(HoardHeap, CountsUAndA) {
  fill(2);
  void* other = get(16);
  EXPECT_EQ(heap_->u(), 2 * kBlocks * kSize + 16);
  EXPECT_EQ(heap_->a(), 2 * kBlocks * kSize + blocks_of(16) * 16);
  free_of(1, 3);
  give(other);
  EXPECT_EQ(heap_->u(), (2 * kBlocks - 3) * kSize);
  EXPECT_EQ(heap_->a(), 2 * kBlocks * kSize + blocks_of(16) * 16);
}

// Fig. 2, free line 9, block by block: of a small heap K counts, of a large one f.
TEST_F(HoardHeap, CrossesTheThresholdWhenBothHalvesSaySo) {
  for (size_t superblocks : {2, 5, 8, 40}) {
    fill(superblocks);
    options.keep = 4;
    size_t a = heap_->a(), u = heap_->u();
    ASSERT_EQ(a, u) << "all full";
    for (size_t i = 0; i < superblocks * (kBlocks - 1); ++i, u -= kSize) {
      EXPECT_EQ(heap_->crosses_emptiness_threshold(), u + 4 * 8192 < a && u < a - a / 4) << a << " " << u;
      LockGuard guard(heap_->lock);
      heap_->put_block(at(i % superblocks), full_[i % superblocks].back());
      full_[i % superblocks].pop_back();
    }
    options.keep = 1000;
    get_many(superblocks * (kBlocks - 1), kSize);
    full_.clear();
  }
}

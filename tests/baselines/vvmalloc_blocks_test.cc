// What all approaches stand on: boundary tags, splitting, merging, the lists by size, and the heap's account.
#include <array>

#include "baselines/vvmalloc/segregated_list.h"
#include "contract_support.h"

using namespace hm;
using namespace hm::vvmalloc;

namespace {

constexpr ListId kMine{7};

// An arena on memory of the test's, and the list that owns it.
class OneArena : public testing::Test {
 protected:
  OneArena() {
    arena_.write_prologue();
    arena_.write_epilogue();
    list_.insert(arena_.fill(kMine));
  }

  Block* take(size_t request) {
    Block* block = list_.allocate(block_size(request));
    EXPECT_NE(block, nullptr);
    return block;
  }
  void give(Block* block) { list_.insert(list_.release(block)); }

  // How many free blocks there are; every tag is right.
  size_t free_blocks() {
    size_t listed = 0, walked = 0;
    EXPECT_TRUE(list_.is_valid(&listed));
    for (Block* block = arena_.inside(); block->header.state() != State::kEpilogue; block = block->right()) {
      EXPECT_EQ(block->header, block->footer());
      walked += block->header.state() == State::kFree;
    }
    EXPECT_EQ(walked, listed);
    return listed;
  }

  alignas(16) std::array<char, 8192> memory_{};
  Arena arena_{memory_.data() + sizeof(Tag), 8192 - 16};
  SegregatedList list_{kMine};
};

}  // namespace

TEST(Block, SizesOfRequests) {
  EXPECT_EQ(block_size(1), 32u);
  for (size_t request = 1; request < 5000; ++request) {
    EXPECT_EQ(block_size(request) % 16, 0u);
    EXPECT_GE(block_size(request), request + kTags);
    EXPECT_LT(block_size(request), request + kTags + (request < 16 ? 32 : 16));
  }
}

TEST(Block, ATagHoldsAllItIsTold) {
  for (State state : {State::kFree, State::kUsed, State::kPrologue, State::kEpilogue, State::kWhole, State::kLead})
    for (size_t size : {kMin, size_t{1} << 20, (size_t{1} << 48) - 16})
      for (ListId owner : {kNobody, ListId{1}, ListId{UINT16_MAX}}) {
        Tag tag(state, size, owner);
        EXPECT_EQ(tag.state(), state);
        EXPECT_EQ(tag.size(), size);
        EXPECT_EQ(tag.owner(), owner);
      }
}

TEST_F(OneArena, WhatIsLeftOfABlockStaysFreeUnlessItIsTooLittle) {
  size_t whole = arena_.inside()->size();
  Block* first = take(100);
  EXPECT_EQ(first->size(), block_size(100));
  EXPECT_EQ(first->right()->header, Tag(State::kFree, whole - block_size(100), kMine));
  EXPECT_EQ(free_blocks(), 1u);
  take(200);
  give(first);
  EXPECT_EQ(take(100 - 16), first);  // 16 bytes would be left
  EXPECT_EQ(first->size(), block_size(100));
  EXPECT_EQ(free_blocks(), 1u);
}

// The four cases of coalescing: of three blocks in a row the middle one is freed, beside neighbours that are free or not.
TEST_F(OneArena, MergesWithItsFreeNeighbours) {
  for (bool left_free : {false, true})
    for (bool right_free : {false, true}) {
      Block *left = take(100), *middle = take(200), *right = take(300), *behind = take(400);
      if (left_free) give(left);
      if (right_free) give(right);
      give(middle);
      size_t merged = block_size(200) + left_free * block_size(100) + right_free * block_size(300);
      EXPECT_EQ((left_free ? left : middle)->header, Tag(State::kFree, merged, kMine)) << left_free << right_free;
      EXPECT_EQ(free_blocks(), 2u);
      if (!left_free) give(left);
      if (!right_free) give(right);
      give(behind);
    }
}

TEST_F(OneArena, EdgesStopTheMerging) {
  size_t whole = arena_.inside()->size();
  Block* first = take(100);
  Block* last = take(first->right()->size() - kTags);
  EXPECT_EQ(last->right()->header.state(), State::kEpilogue);
  give(last);
  give(first);
  EXPECT_EQ(arena_.inside()->header, Tag(State::kFree, whole, kMine));
  EXPECT_EQ(arena_.inside()->left_footer().state(), State::kPrologue);
  EXPECT_EQ(free_blocks(), 1u);
}

TEST_F(OneArena, AnAlignedBlockLeavesTheLeadFree) {
  for (size_t alignment = 32; alignment <= 2048; alignment *= 2) {
    Block* block = list_.allocate_aligned(alignment, block_size(100));
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(address_of(block->payload()) % alignment, 0u);
    EXPECT_GE(block->capacity(), 100u);
    EXPECT_LE(free_blocks(), 2u);
    give(block);
    EXPECT_EQ(free_blocks(), 1u);
  }
  EXPECT_EQ(list_.allocate_aligned(4096, 8000), nullptr);
  EXPECT_EQ(list_.allocate(8192), nullptr);
}

TEST_F(OneArena, TheExaminationSeesDamage) {
  take(100);
  Block* free = take(200);
  take(300);
  give(free);
  size_t listed = 0;
  ASSERT_TRUE(list_.is_valid(&listed));
  Tag good = free->header;
  for (Tag bad : {Tag(State::kUsed, good.size(), kMine), Tag(State::kFree, good.size(), ListId{8})}) {
    free->set(bad.state(), bad.size(), bad.owner());
    EXPECT_FALSE(list_.is_valid(&listed));
  }
  free->set(State::kFree, good.size(), kMine);
  free->prev = free;
  EXPECT_FALSE(list_.is_valid(&listed));
}

TEST(FreeLists, FindsWhatIsThereHoweverTheListsDivideSizes) {
  alignas(16) static std::array<char, 1 << 16> memory;
  Block* block = Block::at(memory.data() + 8);
  for (size_t size = 32; size < 16000; size += 16) {
    FreeLists lists;
    block->set(State::kFree, size, kMine);
    lists.insert(block);
    EXPECT_EQ(lists.find(size), block);
    EXPECT_EQ(lists.find(size + 16), nullptr);
    EXPECT_EQ(lists.find(32), block);
    EXPECT_EQ(lists.find_close(size), block);
    EXPECT_EQ(lists.find_close(32), list_of(size) <= 1 ? block : nullptr);
    lists.remove(block);
    EXPECT_EQ(lists.find(32), nullptr);
  }
}

TEST(Calls, NoMemoryForWhatIsTooLarge) {
  EXPECT_EQ(vvmalloc::allocate((size_t{1} << 46) + 1), nullptr);
  EXPECT_EQ(vvmalloc::allocate_aligned(64, (size_t{1} << 46) + 1), nullptr);
}

TEST(Calls, AHugeRequestLeavesTheSegmentInUse) {
  char* before = contract::get(300 * kKiB);
  vvmalloc::Counters counted = vvmalloc::counters();
  void* huge = contract::get(300 * kMiB);
  EXPECT_EQ(vvmalloc::counters().extensions, counted.extensions + 1);
  EXPECT_GT(vvmalloc::counters().heap_lock_ns, counted.heap_lock_ns) << "there was a system call within";
  EXPECT_GE(vvmalloc::usage().mapped, 300 * kMiB);
  char* after = contract::get(300 * kKiB);
  EXPECT_GT(after, before);
  EXPECT_LT(after, before + 2 * kMiB) << "behind the one before, not behind the huge one";
  contract::give_all({before, huge, after});
  EXPECT_TRUE(vvmalloc::is_valid()) << "of all segments";
}

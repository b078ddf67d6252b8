// Threads' lists, arenas and garbage collection (Approaches 2 to 4), with two lists in the hands of one thread.
#include <gtest/gtest.h>

#include <vector>

#include "baselines/vvmalloc/thread_list.h"

using namespace hm;
using namespace hm::vvmalloc;

namespace {

constexpr size_t kWhole = kArena - Arena::kOverhead;  // the largest block of the least arena

class TwoLists : public testing::Test {
 protected:
  ~TwoLists() override {
    size_t listed = 0, walked = 0;
    EXPECT_TRUE(a_.is_valid(&listed) && b_.is_valid(&listed));
    EXPECT_TRUE(shared_.central.is_valid(0) && shared_.heap.is_valid(&walked));
    EXPECT_EQ(listed, walked) << "a free block is in no list";
    EXPECT_EQ(a_.allocated() + b_.allocated(), live_);
  }

  Block* take(ThreadList& list, size_t size) {
    Block* block = list.allocate(size);
    EXPECT_NE(block, nullptr);
    memset(block->payload(), 0x77, block->capacity());
    live_ += block->size();
    return block;
  }
  void give(ThreadList& list, Block* block) {
    live_ -= block->size();
    EXPECT_TRUE(list.free(block));
  }
  uint64_t extensions() { return shared_.heap.account().extensions; }
  size_t mapped() { return shared_.heap.account().bytes; }

  // Bytes at the end of the arena that a list has just taken, as one free block.
  static size_t rest_behind(Block* block) {
    Block* right = block->right();
    return right->header.state() == State::kFree ? right->size() : 0;
  }

  Shared shared_;
  ThreadList a_{ListId{100}, shared_};
  ThreadList b_{ListId{200}, shared_};
  size_t live_ = 0;
};

}  // namespace

TEST_F(TwoLists, TheFirstRequestGetsTheLeastArena) {
  Block* block = take(a_, 48);
  EXPECT_EQ(mapped(), kApproach == 4 ? 256 * kKiB : 64 * kKiB);
  EXPECT_EQ(extensions(), 1u);
  EXPECT_EQ(block->left_footer().state(), State::kPrologue);
  EXPECT_EQ(block->header.owner(), a_.id());
  EXPECT_EQ(block->right()->right()->header.state(), State::kEpilogue);
  EXPECT_EQ(rest_behind(block), kWhole - 48) << "what is left stays with the thread";
  Block* second = take(a_, 48);
  EXPECT_EQ(second, block->right());
  EXPECT_EQ(extensions(), 1u);
  give(a_, block);
  give(a_, second);
}

TEST_F(TwoLists, NeighbouringArenasNeverMerge) {
  Block *first = take(a_, kWhole), *second = take(a_, kWhole), *third = take(b_, kWhole);
  ASSERT_EQ(first->end() + 2 * kEdge, second->start()) << "arenas are neighbours";
  ASSERT_EQ(second->end() + 2 * kEdge, third->start());
  give(a_, first);
  EXPECT_EQ(first->size(), kWhole);
  give(b_, third);
  give(a_, second);
  EXPECT_EQ(second->size(), kWhole);
  EXPECT_EQ(third->size(), kWhole);
  EXPECT_EQ(first->right()->header.state(), State::kEpilogue);
}

TEST_F(TwoLists, OneRunStaysTheNextGoesToTheQueueAndServesAnother) {
  Block *first = take(a_, kWhole), *second = take(a_, kWhole);
  give(a_, first);
  EXPECT_EQ(a_.enqueues(), 0u);
  give(a_, second);
  EXPECT_EQ(a_.enqueues(), 1u);
  EXPECT_EQ(second->header, Tag(State::kFree, kWhole, kNobody));
  EXPECT_EQ(take(a_, kWhole), first) << "first its own list";
  give(a_, first);
  uint64_t before = extensions();
  Block* theirs = take(b_, 100 * 16);
  EXPECT_EQ(theirs, second);
  EXPECT_EQ(theirs->header.owner(), b_.id());
  EXPECT_EQ(b_.dequeues(), 1u);
  EXPECT_EQ(extensions(), before) << "the queue comes before the heap";
  give(b_, theirs);
}

TEST_F(TwoLists, OfTheQueuedArenasTheSmallestThatFits) {
  Block *large = take(a_, 8 * kArena - Arena::kOverhead), *medium = take(a_, 4 * kArena - Arena::kOverhead),
        *small = take(a_, 2 * kArena - Arena::kOverhead);
  for (Block* block : {large, small, medium}) give(a_, block);
  EXPECT_EQ(a_.enqueues(), 3u);
  uint64_t before = extensions();
  Block* theirs = take(b_, 3 * kArena);
  EXPECT_EQ(theirs, medium);
  Block* little = take(b_, 48);
  EXPECT_EQ(little, small) << "rather a large arena than a new one";
  EXPECT_EQ(extensions(), before);
  give(b_, theirs);
  give(b_, little);
}

// A large arena in small pieces; in its middle a run of an arena's size becomes free.
TEST_F(TwoLists, ARunIsCutOutAndIsolated) {
  give(a_, take(a_, 4 * kArena - Arena::kOverhead));  // to the queue, for list b to break
  std::vector<Block*> pieces;
  for (int i = 0; i < 6; ++i) pieces.push_back(take(b_, kArena / 2));
  for (int i = 1; i < 6; ++i) ASSERT_EQ(pieces[static_cast<size_t>(i) - 1]->right(), pieces[static_cast<size_t>(i)]);
  ASSERT_GE(rest_behind(pieces[5]), kWhole / 2) << "b has a rest, but no run, of its own";
  Block* other = take(b_, kWhole);  // from a new arena, so that b has a run to keep
  give(b_, other);
  ASSERT_EQ(b_.enqueues(), 0u);

  give(b_, pieces[1]);
  EXPECT_EQ(b_.enqueues(), 0u) << "half an arena is no run";
  give(b_, pieces[3]);
  give(b_, pieces[2]);
  ASSERT_EQ(b_.enqueues(), 1u) << "one and a half arenas are";
  Block* edge = pieces[1];
  EXPECT_EQ(edge->header.state(), State::kPrologue);
  EXPECT_EQ(pieces[4]->left_footer().state(), State::kEpilogue);
  Block* inside = Block::at(edge->end());
  EXPECT_EQ(inside->header, Tag(State::kFree, kArena / 2 * 3 - Arena::kOverhead, kNobody));

  give(b_, pieces[0]);
  give(b_, pieces[4]);
  EXPECT_EQ(pieces[0]->size(), kArena / 2) << "its right neighbour is another arena's edge";
  EXPECT_EQ(pieces[4]->header, Tag(State::kFree, pieces[4]->size(), b_.id()));
  EXPECT_EQ(edge->header.state(), State::kPrologue);

  Block* theirs = take(a_, kWhole);
  EXPECT_EQ(theirs, inside);
  EXPECT_EQ(theirs->header.owner(), a_.id());
  give(a_, theirs);
  give(b_, pieces[5]);
}

TEST_F(TwoLists, ABlockFreedElsewhereStaysThere) {
  Block *block = take(a_, 512), *neighbour = take(a_, 512);
  Tag before = block->header;
  give(b_, block);
  EXPECT_EQ(block->header, before) << "its tags are the owner's";
  EXPECT_EQ(block->footer(), before);
  give(a_, neighbour);
  EXPECT_EQ(neighbour->left_footer(), before) << "the owner merges nothing with it";
  EXPECT_NE(take(a_, 512), block) << "it is not the owner's to hand out";
  uint64_t extended = extensions();
  EXPECT_EQ(take(b_, 512), block) << "but the freeing thread's";
  EXPECT_EQ(extensions(), extended);
  EXPECT_EQ(block->header, before);
  give(a_, block);
  EXPECT_EQ(block->header.state(), State::kFree) << "at home again";
  give(a_, neighbour);
}

TEST_F(TwoLists, AForeignBlockIsUsedWhole) {
  Block *block = take(a_, 10 * 1024), *neighbour = take(a_, 512);
  give(b_, block);
  give(b_, neighbour);
  EXPECT_EQ(block->size(), 10 * 1024u) << "it does not merge";
  EXPECT_FALSE(b_.free(neighbour)) << "a second free in a row is seen";
  Block* small = take(b_, 48);
  EXPECT_NE(small->start(), block->start()) << "not for a much smaller request";
  EXPECT_EQ(take(b_, 9 * 1024), block);
  EXPECT_EQ(block->size(), 10 * 1024u) << "nor split";
  give(b_, small);
  give(b_, block);
}

TEST_F(TwoLists, ALargeRequestHasAnArenaToItselfWhichWhoeverFreesGivesAway) {
  Block* block = take(a_, kWhole + 16);
  EXPECT_EQ(block->header.state(), State::kWhole);
  EXPECT_EQ(block->left_footer().state(), State::kPrologue);
  EXPECT_EQ(block->right()->header.state(), State::kEpilogue);
  EXPECT_EQ(mapped(), kArena / 4 * 5);
  give(b_, block);
  EXPECT_EQ(b_.enqueues(), 1u);
  uint64_t before = extensions();
  EXPECT_EQ(take(a_, kWhole + 16), block);
  EXPECT_EQ(extensions(), before);
  give(a_, block);
  EXPECT_EQ(a_.enqueues(), 1u);
}

TEST_F(TwoLists, TheLeadOfALargeAlignedBlockComesBack) {
  size_t alignment = kArena * 2;
  Block* block = a_.allocate_aligned(alignment, kArena * 3);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(address_of(block->payload()) % alignment, 0u);
  live_ += block->size();
  size_t free_blocks = 0;
  EXPECT_TRUE(shared_.heap.is_valid(&free_blocks));
  give(b_, block);
  uint64_t before = extensions();
  Block* all = take(b_, CentralQueue::rounded(kArena * 5 + 64) - Arena::kOverhead);
  EXPECT_EQ(extensions(), before) << "with its lead it is as large as it was";
  EXPECT_LE(all->start(), block->start());
  give(b_, all);
}

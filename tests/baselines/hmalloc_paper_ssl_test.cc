// The Index rule and the list of exhausted shared superblocks (section 3.1; Fig. 6, lines 14 to 27).
#include "hmalloc_paper_support.h"

using namespace hm;
using namespace hm::hmalloc_paper;
using namespace hm::hmalloc_paper::test;

// "If the Index-th block is freed, HMalloc assumes that the superblock is still empty.  [...]  Otherwise, HMalloc
// assumes the superblock has been exhausted."
TEST(PaperIndex, FreeBlocksElsewhereAreNotSeen) {
  std::vector<void*> blocks = exhaust_first(64);
  for (size_t i = 1; i < blocks.size(); ++i) free_by_flag(blocks[i]);
  void* next = hmp_shared_alloc(64);
  EXPECT_NE(&shared_superblock_of(next), &shared_superblock_of(blocks[0])) << "one block in the way, and 510 are lost";
  EXPECT_EQ(local_heap()->counts.superblocks_4m.read(), 1u);
  for (size_t i = 1; i < blocks.size(); ++i) EXPECT_TRUE(flag_of(blocks[i])->is_free());
}

TEST(PaperIndex, TheIndexThBlockIsReusedAndTheIndexGoesOn) {
  std::vector<void*> blocks = exhaust_first(64);
  SharedSuperblock& superblock = shared_superblock_of(blocks[0]);
  for (size_t i : {0, 1, 2, 5}) free_by_flag(blocks[i]);
  for (size_t i : {0, 1, 2}) {
    EXPECT_EQ(superblock.index, i);
    EXPECT_EQ(hmp_shared_alloc(64), blocks[i]);
    EXPECT_FALSE(flag_of(blocks[i])->is_free());
  }
  EXPECT_EQ(superblock.index, 3u);
  EXPECT_NE(&shared_superblock_of(hmp_shared_alloc(64)), &superblock) << "block 3 is live";
}

// Lines 20 and 21 do not wrap: the next block would be past the superblock's end.
TEST(PaperIndex, TheIndexWraps) {
  std::vector<void*> blocks = exhaust_first(64);
  SharedSuperblock& superblock = shared_superblock_of(blocks[0]);
  for (int round = 0; round < 3; ++round) {
    for (void* block : blocks) free_by_flag(block);
    for (void* block : blocks) ASSERT_EQ(hmp_shared_alloc(64), block);
    EXPECT_EQ(superblock.index, 0u);
    EXPECT_TRUE(is_valid());
  }
}

TEST(PaperIndex, TheIndexWrapsAfterAFindInTheListToo) {
  constexpr size_t kSize = 30 * kKiB;
  std::vector<void*> first = exhaust_first(kSize);
  ASSERT_EQ(first.size(), 2u);
  SharedSuperblock& superblock = shared_superblock_of(first[0]);
  free_by_flag(first[0]);
  EXPECT_EQ(hmp_shared_alloc(kSize), first[0]);  // Index is the last block's now
  EXPECT_NE(hmp_shared_alloc(kSize), nullptr);   // a second superblock
  std::vector<void*> second = allocate_many(shared_heap(kSize).current->vacant_objects, kSize);
  free_by_flag(first[1]);
  EXPECT_EQ(hmp_shared_alloc(kSize), first[1]) << "found in the list";
  EXPECT_EQ(superblock.index, 0u);
  free_by_flag(first[0]);
  EXPECT_EQ(hmp_shared_alloc(kSize), first[0]);
}

namespace {

constexpr size_t kLargeBlock = 32000;  // two in the first superblock, 130 in each of the others

// So many superblocks without a vacant block, the newest of them current.
std::vector<std::vector<void*>> exhaust(size_t superblocks) {
  std::vector<std::vector<void*>> blocks{exhaust_first(kLargeBlock)};
  while (blocks.size() < superblocks) {
    std::vector<void*> next{hmp_shared_alloc(kLargeBlock)};
    while (shared_heap(kLargeBlock).current->vacant_objects > 0) next.push_back(hmp_shared_alloc(kLargeBlock));
    blocks.push_back(next);
  }
  return blocks;
}

}  // namespace

TEST(PaperSsl, AnExhaustedSuperblockIsInsertedAndOneThatIsFoundLeaves) {
  auto blocks = exhaust(3);
  SharedHeap& heap = shared_heap(kLargeBlock);
  SharedSuperblock *a = &shared_superblock_of(blocks[0][0]), *b = &shared_superblock_of(blocks[1][0]),
                   *c = &shared_superblock_of(blocks[2][0]);
  EXPECT_EQ(heap.ssl.first, a);
  EXPECT_EQ(heap.ssl.last, b);
  EXPECT_EQ(heap.current, c);
  free_by_flag(blocks[1][0]);
  EXPECT_EQ(hmp_shared_alloc(kLargeBlock), blocks[1][0]);
  EXPECT_EQ(heap.current, b);
  EXPECT_EQ(heap.ssl.first, a);
  EXPECT_EQ(a->next, c);
  EXPECT_EQ(heap.ssl.last, c);
  EXPECT_TRUE(is_valid());
}

// In the paper a superblock that is found stays in the list, and is inserted a second time: a ring.
TEST(PaperSsl, SuperblocksChangePlacesForEver) {
  auto blocks = exhaust(3);
  for (size_t round = 0; round < 1000; ++round) {
    void*& block = blocks[round % 3][round / 3 % 2];
    free_by_flag(block);
    ASSERT_EQ(hmp_shared_alloc(kLargeBlock), block) << round;
    ASSERT_TRUE(shared_heap(kLargeBlock).is_valid(class_of(kLargeBlock))) << round;
    if (round % 6 == 5)  // every Index is at 2: all the way round, except for the first superblock's
      for (auto& superblock : {blocks[1], blocks[2]}) shared_superblock_of(superblock[0]).index = 0;
  }
  EXPECT_EQ(local_heap()->counts.superblocks_4m.read(), 2u);
}

TEST(PaperSsl, AWalkLooksAtEverySuperblock) {
  auto blocks = exhaust(6);
  SharedHeap::Counts& counts = local_heap()->counts;
  uint64_t walks = counts.ssl_walks.read(), steps = counts.ssl_walk_steps.read();
  EXPECT_NE(hmp_shared_alloc(kLargeBlock), nullptr);
  EXPECT_EQ(counts.ssl_walks.read(), walks + 1);
  EXPECT_EQ(counts.ssl_walk_steps.read(), steps + 6);
  EXPECT_EQ(counts.ssl_walk_hits.read(), 0u);
}

TEST(PaperSsl, AWalkEndsAtTheFirstFind) {
  auto blocks = exhaust(6);
  SharedHeap::Counts& counts = local_heap()->counts;
  uint64_t steps = counts.ssl_walk_steps.read();
  free_by_flag(blocks[2][0]);
  free_by_flag(blocks[3][0]);
  EXPECT_EQ(hmp_shared_alloc(kLargeBlock), blocks[2][0]);
  EXPECT_EQ(counts.ssl_walk_steps.read(), steps + 3);
  EXPECT_EQ(counts.ssl_walk_hits.read(), 1u);
}

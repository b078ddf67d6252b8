// Shared memory: classes, superblocks, VacantObjects, block cache lists, flags, the Index rule and the list of exhausted
// superblocks (sections 3.1 to 3.3, Fig. 6 and 9).
#include "hmalloc_paper_support.h"

using namespace hmalloc_paper_test;

TEST(PaperShared, ClassesAreMultiplesOfALineWithTheFlagUpTo32K) {
  for (size_t size = 1; size < 40 * kKiB; size += size < 300 ? 1 : 97) {
    void* block = get(size);
    size_t bytes = (size + 16 + 63) / 64 * 64;
    ASSERT_EQ(is_from_system(block), bytes >= 32 * kKiB) << size;
    EXPECT_TRUE(is_from_system(block) || shared_superblock_of(block).object_size == bytes) << size;
    give(block);
  }
  EXPECT_EQ(large_blocks.allocated(), 0u) << "the system has its blocks back at once";
  size_t most = 32 * kKiB - 64 - 16;
  EXPECT_EQ(shared_superblock_of(get(most)).size_class, kClasses - 1);
  EXPECT_TRUE(is_from_system(get(most + 1)));
}

TEST(PaperShared, TheFirstSuperblockIs64KThenTheyAre4M) {
  for (size_t size : {10, 5000}) {
    std::vector<void*> first = exhaust_one(size);
    EXPECT_EQ(shared_superblock_of(first[0]).head.size, 64 * kKiB) << size;
    EXPECT_EQ(first.size(), (64 * kKiB - 128) / block_size(size));
    SharedSuperblock& next = shared_superblock_of(get(size));
    EXPECT_EQ(next.head.size, 4 * kMiB) << size;
    EXPECT_EQ(address_of(&next) % (4 * kMiB), 0u);
  }
  EXPECT_EQ(local_heap()->counts.superblocks_64k.read(), 2u) << "each class begins with a small one";
  EXPECT_EQ(local_heap()->counts.superblocks_4m.read(), 2u);
}

// "VacantObjects will not be increased by 1 when a block in the superblock is freed."
TEST(PaperShared, BlocksComeInOrderUntilNoneIsVacantWhateverIsFreed) {
  char* last = get(100);
  SharedSuperblock& superblock = shared_superblock_of(last);
  EXPECT_EQ(last, superblock.start_addr + 16);
  for (size_t vacant = superblock.total_objects - 1; vacant > 0; --vacant) {
    EXPECT_EQ(superblock.vacant_objects, vacant);
    free_by_flag(last);
    char* block = get(100);
    EXPECT_EQ(block, last + 128);
    last = block;
  }
  EXPECT_EQ(superblock.vacant_objects, 0u);
}

TEST(PaperShared, AnAllocationSetsTheFlagAndLeavesTheRestAlone) {
  char* block = get(30);
  EXPECT_FALSE(flag_of(block)->is_free());
  EXPECT_TRUE(flag_of(block + 64)->is_free()) << "its neighbour's";
}

TEST(PaperShared, TheCacheHasAHundredPlacesAndServesLastInFirstOut) {
  std::vector<void*> blocks = get_many(150, 64);
  SharedHeap& heap = shared_heap(64);
  for (size_t i = 0; i < 100; ++i) give(blocks[i]);
  EXPECT_EQ(heap.cache.count, 100u);
  for (size_t i = 0; i < 100; ++i) EXPECT_FALSE(flag_of(blocks[i])->is_free()) << "a cached block is nobody else's";
  give(blocks[100]);
  EXPECT_EQ(heap.cache.count, 100u);
  EXPECT_TRUE(flag_of(blocks[100])->is_free()) << "the 101st free goes to the flag";
  EXPECT_TRUE(hmalloc_paper::is_valid());
  EXPECT_FALSE(is_from_system(get(200))) << "each class has its cache";
  EXPECT_EQ(heap.cache.count, 100u);
  for (size_t i = 100; i-- > 0;) EXPECT_EQ(get(64), blocks[i]);
  EXPECT_GT(get(64), blocks.back()) << "then a superblock's";
}

// Fig. 9 does not say whose list it is; the owner's would be written by two threads.  And Fig. 6, line 5 comes before
// line 6.
TEST(PaperShared, TheCacheIsTheFreeingThreadsWhichOpensASuperblockAllTheSame) {
  void* block = get(64);
  on_thread([&] {
    give(block);
    EXPECT_EQ(shared_heap(64).cache.count, 1u);
    EXPECT_EQ(shared_heap(64).current, nullptr);
    EXPECT_EQ(get(64), block) << "a thread does get blocks of another's heap";
    ASSERT_NE(shared_heap(64).current, nullptr);
    EXPECT_EQ(shared_heap(64).current->vacant_objects, shared_heap(64).current->total_objects);
  });
  EXPECT_EQ(shared_heap(64).cache.count, 0u);
}

TEST(PaperShared, NothingGoesBackToTheSystem) {
  std::vector<void*> blocks = get_many(40'000, 200);
  size_t mapped = hmalloc_paper::usage().mapped;
  EXPECT_GE(next_superblocks.taken(), 2u);
  give_all(blocks);
  EXPECT_EQ(hmalloc_paper::usage().mapped, mapped);
  EXPECT_TRUE(hmalloc_paper::is_valid());
}

TEST(PaperShared, AnAlignedBlockIsFreedAsAWhole) {
  void* aligned = allocate_aligned(256, 300);
  SharedSuperblock& superblock = shared_superblock_of(aligned);
  give(aligned);
  void* plain = local_heap()->shared[superblock.size_class].cache.blocks[0];
  EXPECT_EQ(address_of(plain) % 64, 16u) << "the cache has the block, not a place within";
  EXPECT_EQ(usable(plain), superblock.object_size - 16u);
}

TEST(PaperShared, TheExaminationSeesABlockThatIsCachedTwice) {
  void* block = get(64);
  give(block);
  EXPECT_TRUE(hmalloc_paper::is_valid());
  give(block);
  EXPECT_FALSE(hmalloc_paper::is_valid()) << "the double free that the paper does not notice";
}

// "If the Index-th block is freed, HMalloc assumes that the superblock is still empty.  [...]  Otherwise, HMalloc
// assumes the superblock has been exhausted."
TEST(PaperIndex, OnlyTheIndexThBlockIsLookedAt) {
  std::vector<void*> blocks = exhaust_one(64);
  SharedSuperblock& superblock = shared_superblock_of(blocks[0]);
  for (size_t i = 0; i < blocks.size(); ++i)
    if (i != 3) free_by_flag(blocks[i]);
  for (size_t i : {0, 1, 2}) {
    EXPECT_EQ(superblock.index, i);
    EXPECT_EQ(get(64), blocks[i]);
    EXPECT_FALSE(flag_of(blocks[i])->is_free());
  }
  EXPECT_EQ(superblock.index, 3u);
  EXPECT_NE(&shared_superblock_of(get(64)), &superblock) << "one block in the way, and 507 are lost";
  EXPECT_EQ(local_heap()->counts.superblocks_4m.read(), 1u);
  for (size_t i = 4; i < blocks.size(); ++i) EXPECT_TRUE(flag_of(blocks[i])->is_free());
}

// Lines 20 and 21 do not wrap: the next block would be past the superblock's end.
TEST(PaperIndex, TheIndexWraps) {
  std::vector<void*> blocks = exhaust_one(64);
  for (int round = 0; round < 3; ++round) {
    for (void* block : blocks) free_by_flag(block);
    for (void* block : blocks) ASSERT_EQ(get(64), block);
    EXPECT_EQ(shared_superblock_of(blocks[0]).index, 0u);
    EXPECT_TRUE(hmalloc_paper::is_valid());
  }
}

namespace {

constexpr size_t kLarge = 32000;  // two in the first superblock, 130 in each of the others

// So many superblocks without a vacant block, the newest of them current.
std::vector<std::vector<void*>> exhaust(size_t superblocks) {
  std::vector<std::vector<void*>> blocks;
  while (blocks.size() < superblocks) blocks.push_back(exhaust_one(kLarge));
  return blocks;
}

}  // namespace

TEST(PaperSsl, AnExhaustedSuperblockIsInsertedAndOneThatIsFoundLeaves) {
  auto blocks = exhaust(3);
  SharedHeap& heap = shared_heap(kLarge);
  SharedSuperblock *a = &shared_superblock_of(blocks[0][0]), *b = &shared_superblock_of(blocks[1][0]),
                   *c = &shared_superblock_of(blocks[2][0]);
  EXPECT_EQ(heap.ssl.first, a);
  EXPECT_EQ(heap.ssl.last, b);
  EXPECT_EQ(heap.current, c);
  free_by_flag(blocks[1][0]);
  EXPECT_EQ(get(kLarge), blocks[1][0]);
  EXPECT_EQ(heap.current, b);
  EXPECT_EQ(heap.ssl.first, a);
  EXPECT_EQ(a->next, c);
  EXPECT_EQ(heap.ssl.last, c);
  EXPECT_TRUE(hmalloc_paper::is_valid());
}

// In the paper a superblock that is found stays in the list, and is inserted a second time: a ring.
TEST(PaperSsl, SuperblocksChangePlacesForEver) {
  auto blocks = exhaust(3);
  for (size_t round = 0; round < 1000; ++round) {
    std::vector<void*>& mine = blocks[round % 3];
    void* block = mine[round / 3 % mine.size()];  // the Index-th, which wraps in the list too
    free_by_flag(block);
    ASSERT_EQ(get(kLarge), block) << round;
    ASSERT_TRUE(shared_heap(kLarge).is_valid(class_of(kLarge))) << round;
  }
  EXPECT_EQ(local_heap()->counts.superblocks_4m.read(), 2u);
}

TEST(PaperSsl, AWalkBeginsAtTheStartAndEndsAtTheFirstFind) {
  auto blocks = exhaust(6);
  SharedHeap::Counts& counts = local_heap()->counts;
  uint64_t walks = counts.ssl_walks.read(), steps = counts.ssl_walk_steps.read();
  free_by_flag(blocks[2][0]);
  free_by_flag(blocks[3][0]);
  EXPECT_EQ(get(kLarge), blocks[2][0]);
  EXPECT_EQ(counts.ssl_walks.read(), walks + 1);
  EXPECT_EQ(counts.ssl_walk_steps.read(), steps + 3);
  EXPECT_EQ(get(kLarge), blocks[3][0]);
  EXPECT_EQ(counts.ssl_walk_hits.read(), 2u);
  steps = counts.ssl_walk_steps.read();
  get(kLarge);
  EXPECT_EQ(counts.ssl_walk_steps.read(), steps + 6) << "in vain";
  EXPECT_EQ(counts.ssl_walk_hits.read(), 2u);
}

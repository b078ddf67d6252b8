// Shared memory: classes, superblocks, VacantObjects, block cache lists, flags (sections 3.1 to 3.3, Fig. 6 and 9).
#include "hmalloc_paper_support.h"

using namespace hm;
using namespace hm::hmalloc_paper;
using namespace hm::hmalloc_paper::test;

TEST(PaperShared, ClassesAreMultiplesOfALineWithTheFlag) {
  for (size_t size = 1; size < 40 * kKiB; size += size < 300 ? 1 : 97) {
    void* block = hmp_shared_alloc(size);
    size_t bytes = (size + 16 + 63) / 64 * 64;
    EXPECT_EQ(is_from_system(block), bytes >= 32 * kKiB) << size;
    if (!is_from_system(block)) { EXPECT_EQ(shared_superblock_of(block).object_size, bytes) << size; }
    hmp_shared_free(block);
  }
}

TEST(PaperShared, From32KOnTheSystemServes) {
  size_t most = 32 * kKiB - 64 - 16;
  void *within = hmp_shared_alloc(most), *beyond = hmp_shared_alloc(most + 1);
  EXPECT_FALSE(is_from_system(within));
  EXPECT_TRUE(is_from_system(beyond));
  EXPECT_EQ(shared_superblock_of(within).size_class, kClasses - 1);
  hmp_shared_free(beyond);
  EXPECT_EQ(large_blocks.allocated(), 0u) << "and has it back at once";
}

TEST(PaperShared, TheFirstSuperblockIs64KThenTheyAre4M) {
  for (size_t size : {10, 5000}) {
    std::vector<void*> first = exhaust_first(size);
    EXPECT_EQ(shared_superblock_of(first[0]).head.size, 64 * kKiB) << size;
    EXPECT_EQ(first.size(), (64 * kKiB - 128) / block_size(size));
    void* next = hmp_shared_alloc(size);
    EXPECT_EQ(shared_superblock_of(next).head.size, 4 * kMiB) << size;
    EXPECT_EQ(address_of(&shared_superblock_of(next)) % (4 * kMiB), 0u);
  }
  EXPECT_EQ(local_heap()->counts.superblocks_64k.read(), 2u) << "each class begins with a small one";
  EXPECT_EQ(local_heap()->counts.superblocks_4m.read(), 2u);
}

TEST(PaperShared, BlocksComeInOrderUntilNoneIsVacant) {
  std::vector<void*> blocks = exhaust_first(64);
  SharedSuperblock& superblock = shared_superblock_of(blocks[0]);
  for (size_t i = 0; i < blocks.size(); ++i) EXPECT_EQ(blocks[i], superblock.start_addr + i * 128 + 16);
  EXPECT_EQ(superblock.vacant_objects, 0u);
}

// "VacantObjects will not be increased by 1 when a block in the superblock is freed."
TEST(PaperShared, AFreeMakesNothingVacant) {
  std::vector<void*> blocks = allocate_many(10, 100);
  SharedSuperblock& superblock = shared_superblock_of(blocks[0]);
  size_t vacant = superblock.vacant_objects;
  EXPECT_EQ(vacant, superblock.total_objects - 10);
  for (void* block : blocks) free_by_flag(block);
  EXPECT_EQ(superblock.vacant_objects, vacant);
  EXPECT_GT(hmp_shared_alloc(100), blocks.back()) << "new blocks first, freed ones when there are none";
}

TEST(PaperShared, AnAllocationSetsTheFlagAndLeavesTheRestAlone) {
  void* block = hmp_shared_alloc(30);
  EXPECT_FALSE(flag_of(block)->is_free());
  EXPECT_TRUE(flag_of(static_cast<char*>(block) + 64)->is_free()) << "its neighbour's";
}

TEST(PaperShared, The101stFreeGoesToTheFlag) {
  std::vector<void*> blocks = allocate_many(150, 64);
  SharedHeap& heap = shared_heap(64);
  for (size_t i = 0; i < 100; ++i) hmp_shared_free(blocks[i]);
  EXPECT_EQ(heap.cache.count, 100u);
  for (size_t i = 0; i < 100; ++i) EXPECT_FALSE(flag_of(blocks[i])->is_free()) << "a cached block is nobody else's";
  hmp_shared_free(blocks[100]);
  EXPECT_EQ(heap.cache.count, 100u);
  EXPECT_TRUE(flag_of(blocks[100])->is_free());
  EXPECT_TRUE(is_valid());
}

TEST(PaperShared, TheCacheServesBeforeAnySuperblockLastInFirstOut) {
  std::vector<void*> blocks = allocate_many(20, 64);
  for (void* block : blocks) hmp_shared_free(block);
  for (size_t i = blocks.size(); i-- > 0;) EXPECT_EQ(hmp_shared_alloc(64), blocks[i]);
  void* fresh = hmp_shared_alloc(64);
  EXPECT_GT(fresh, blocks.back());
}

TEST(PaperShared, EachClassHasItsCache) {
  void* small = hmp_shared_alloc(10);
  hmp_shared_free(small);
  EXPECT_NE(hmp_shared_alloc(100), small);
  EXPECT_EQ(hmp_shared_alloc(48), small) << "the same class";
}

// Fig. 9 does not say whose list it is; the owner's would be written by two threads.
TEST(PaperShared, TheCacheIsTheFreeingThreads) {
  void *block = hmp_shared_alloc(64), *again = nullptr;
  on_thread([&] {
    hmp_shared_free(block);
    EXPECT_EQ(shared_heap(64).cache.count, 1u);
    again = hmp_shared_alloc(64);
  });
  EXPECT_EQ(again, block) << "a thread does get blocks of another's heap";
  EXPECT_EQ(shared_heap(64).cache.count, 0u);
}

// Fig. 6, line 5 comes before line 6.
TEST(PaperShared, AThreadThatOnlyFreedOpensASuperblockAllTheSame) {
  void* block = hmp_shared_alloc(64);
  on_thread([&] {
    hmp_shared_free(block);
    EXPECT_EQ(shared_heap(64).current, nullptr);
    EXPECT_EQ(hmp_shared_alloc(64), block);
    ASSERT_NE(shared_heap(64).current, nullptr);
    EXPECT_EQ(shared_heap(64).current->vacant_objects, shared_heap(64).current->total_objects);
  });
}

TEST(PaperShared, NothingGoesBackToTheSystem) {
  std::vector<void*> blocks = allocate_many(40'000, 200);
  size_t first = first_superblocks.taken(), next = next_superblocks.taken();
  EXPECT_GE(next, 2u);
  for (void* block : blocks) hmp_shared_free(block);
  EXPECT_EQ(first_superblocks.taken(), first);
  EXPECT_EQ(next_superblocks.taken(), next);
  EXPECT_TRUE(is_valid());
}

TEST(PaperShared, TheExaminationSeesABlockThatIsCachedTwice) {
  void* block = hmp_shared_alloc(64);
  hmp_shared_free(block);
  EXPECT_TRUE(is_valid());
  hmp_shared_free(block);
  EXPECT_FALSE(is_valid()) << "the double free that the paper does not notice";
}

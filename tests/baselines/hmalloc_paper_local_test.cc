// Local memory: bump, count, coalescence free, LSL (sections 3.1 to 3.3, Fig. 5 and 8).
#include "hmalloc_paper_support.h"

using namespace hm;
using namespace hm::hmalloc_paper;
using namespace hm::hmalloc_paper::test;

namespace {

char* take(size_t size) { return static_cast<char*>(hmp_local_alloc(size)); }
LocalHeap& heap() { return local_heap()->local; }

// Leaves so many bytes of the current superblock.
std::vector<char*> leave(size_t bytes) {
  std::vector<char*> blocks{take(16)};
  while (heap().current->available_space() > bytes + 8192 + 16) blocks.push_back(take(8192));
  blocks.push_back(take(heap().current->available_space() - bytes));
  EXPECT_EQ(heap().current->available_space(), bytes);
  return blocks;
}

}  // namespace

TEST(PaperLocal, BlocksOfAllSizesLieSideBySide) {
  char* block = take(1);
  EXPECT_EQ(block, local_superblock_of(block).start_addr);
  for (size_t size : {1, 16, 17, 100, 3000, 24}) {
    char* next = take(size);
    EXPECT_EQ(next, heap().current->current_addr - align_up(size, 16));
    EXPECT_EQ(address_of(next) % 16, 0u);
  }
  EXPECT_EQ(heap().current->allocated_num, 7u);
  EXPECT_EQ(heap().current->freed_num, 0u);
}

TEST(PaperLocal, AFreedBlockIsNotReusedWhileAnotherLives) {
  char *a = take(100), *b = take(100);
  hmp_local_free(a);
  EXPECT_GT(take(100), b);
  EXPECT_EQ(heap().current->freed_num, 1u);
}

TEST(PaperLocal, TheLastFreeClearsTheSuperblock) {
  std::vector<char*> blocks;
  for (size_t i = 0; i < 50; ++i) blocks.push_back(take(10 * i + 1));
  for (size_t i = 0; i < 49; ++i) hmp_local_free(blocks[i * 7 % 50]);
  EXPECT_EQ(heap().current->freed_num, 49u);
  EXPECT_GT(heap().current->current_addr, heap().current->start_addr);
  hmp_local_free(blocks[49 * 7 % 50]);
  EXPECT_EQ(heap().current->allocated_num, 0u);
  EXPECT_EQ(heap().current->freed_num, 0u);
  EXPECT_EQ(take(1000), blocks[0]);
}

TEST(PaperLocal, ASuperblockOf64KThenOnesOf4M) {
  std::set<LocalSuperblock*> seen;
  for (size_t i = 0; i < 10'000; ++i) seen.insert(&local_superblock_of(take(1000)));
  size_t small = 0;
  for (LocalSuperblock* superblock : seen) {
    small += superblock->head.size == 64 * kKiB;
    EXPECT_EQ(address_of(superblock) % superblock->head.size, 0u);
  }
  EXPECT_EQ(small, 1u);
  EXPECT_EQ(seen.size(), 4u);
  EXPECT_EQ(heap().superblocks_64k.read(), 1u);
  EXPECT_EQ(heap().superblocks_4m.read(), 3u);
  EXPECT_TRUE(is_valid());
}

// Fig. 5, line 3: half of the current superblock, whichever that is.
TEST(PaperLocal, TheLimitIsHalfOfTheCurrentSuperblock) {
  EXPECT_TRUE(is_local(take(32 * kKiB - 16)));
  EXPECT_TRUE(is_from_system(take(32 * kKiB)));
  take(32 * kKiB - 16);  // no more room: 4 MB
  EXPECT_EQ(heap().current->head.size, 4 * kMiB);
  EXPECT_TRUE(is_local(take(64 * kKiB)));
  EXPECT_TRUE(is_local(take(2 * kMiB - 16)));
  char* large = take(2 * kMiB);
  EXPECT_TRUE(is_from_system(large));
  size_t before = large_blocks.allocated();
  hmp_local_free(large);
  EXPECT_LE(large_blocks.allocated() + 2 * kMiB, before) << "freed to the system directly";
}

// Line 4 asks for more space than the request, not for as much.
TEST(PaperLocal, ARequestOfAllThatIsLeftIsNotServedHere) {
  leave(128);
  LocalSuperblock* superblock = heap().current;
  EXPECT_NE(&local_superblock_of(take(128)), superblock);
  EXPECT_EQ(heap().lsl.first, superblock);
}

TEST(PaperLocal, TheListIsSearchedBeforeTheSystemIsAsked) {
  std::vector<char*> small = leave(64);
  LocalSuperblock* first = heap().current;
  take(100);
  LocalSuperblock* second = heap().current;
  EXPECT_EQ(heap().lsl.first, first);
  for (char* block : small) hmp_local_free(block);  // the first is clear again, and no longer current
  while (heap().current == second) take(30'000);
  EXPECT_EQ(heap().current, first);
  EXPECT_EQ(heap().lsl.first, second);
  EXPECT_EQ(heap().lsl.last, second) << "who is current is not in the list";
  EXPECT_EQ(heap().superblocks_4m.read(), 1u);
  EXPECT_GE(heap().lsl_walk_steps.read(), 2u);
  EXPECT_TRUE(is_valid());
}

// In the paper a superblock that is found stays in the list, and is inserted a second time: a ring.
TEST(PaperLocal, SuperblocksChangePlacesForEver) {
  std::vector<char*> blocks[2];
  for (int round = 0; round < 60; ++round) {
    std::vector<char*>& mine = blocks[round % 2];
    for (char* block : mine) hmp_local_free(block);
    mine.clear();
    LocalSuperblock* before = heap().current;
    while (heap().current == before || before == nullptr) {
      mine.push_back(take(20'000));
      if (before == nullptr) before = heap().current;
    }
    char* last = mine.back();  // already in the other superblock
    mine.pop_back();
    hmp_local_free(last);
    ASSERT_TRUE(heap().is_valid()) << round;
  }
  EXPECT_LE(heap().superblocks_4m.read(), 3u);
}

TEST(PaperLocal, LocalAndSharedNeverMeetInASuperblock) {
  std::set<void*> local, shared;
  for (size_t i = 0; i < 3000; ++i) {
    local.insert(Superblock::of(hmp_local_alloc(i)));
    shared.insert(Superblock::of(hmp_shared_alloc(i)));
  }
  for (void* superblock : local) EXPECT_EQ(shared.count(superblock), 0u);
}

TEST(PaperLocalMisuse, AnotherThreadsFreeEndsTheProgram) {
  void* block = hmp_local_alloc(100);
  EXPECT_EXIT(on_thread([=] { hmp_local_free(block); }), aborted, "a local block of another thread's heap\n$");
}

TEST(PaperLocalMisuse, ASecondFreeIsSeenOnceTheSuperblockIsClear) {
  void* block = hmp_local_alloc(100);
  hmp_local_free(block);
  EXPECT_EXIT(hmp_local_free(block), aborted, "hmp_local_free.*not a local block, or freed already\n$");
}

TEST(PaperLocalMisuse, TheTwoSidesAreKeptApart) {
  void *local = hmp_local_alloc(100), *shared = hmp_shared_alloc(100);
  EXPECT_EXIT(hmp_shared_free(local), aborted, "a local block: hmp_local_free is for it\n$");
  EXPECT_EXIT(hmp_local_free(shared), aborted, "not a local block of hmalloc_paper\n$");
  EXPECT_EXIT((void)usable_size(local, "malloc_usable_size"), aborted, "not a shared block");
  EXPECT_EXIT(hmp_local_free(static_cast<char*>(local) + 8), aborted, "not a local block, or freed already\n$");
}

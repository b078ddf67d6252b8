// Local memory: bump, count, coalescence free, LSL (sections 3.1 to 3.3, Fig. 5 and 8); the functions of both sides.
#include <cerrno>
#include <map>

#include "hmalloc_paper_support.h"

using namespace hmalloc_paper_test;

namespace {

char* take(size_t size) { return static_cast<char*>(hmp_local_alloc(size)); }
LocalHeap& heap() { return local_heap()->local; }
size_t left() { return heap().current->available_space(); }
LocalSuperblock* superblock_of(const void* block) { return reinterpret_cast<LocalSuperblock*>(Superblock::of(block)); }

}  // namespace

TEST(PaperLocal, BlocksOfAllSizesLieSideBySide) {
  char* first = take(1);
  EXPECT_EQ(first, heap().current->start_addr);
  for (size_t size : {1, 16, 17, 100, 3000, 24}) {
    char* next = take(size);
    EXPECT_EQ(next, heap().current->current_addr - align_up(size, 16));
    EXPECT_EQ(address_of(next) % 16, 0u);
  }
  EXPECT_EQ(heap().current->allocated_num, 7u);
}

TEST(PaperLocal, TheLastFreeClearsTheSuperblock) {
  std::vector<char*> blocks;
  for (size_t i = 0; i < 50; ++i) blocks.push_back(take(10 * i + 1));
  for (size_t i = 0; i < 49; ++i) hmp_local_free(blocks[i * 7 % 50]);
  EXPECT_EQ(heap().current->freed_num, 49u);
  char* next = take(10);
  EXPECT_GT(next, blocks.back()) << "nothing is reused while one lives";
  hmp_local_free(next);
  hmp_local_free(blocks[49 * 7 % 50]);
  EXPECT_EQ(heap().current->allocated_num, 0u);
  EXPECT_EQ(heap().current->freed_num, 0u);
  EXPECT_EQ(take(1000), blocks[0]);
}

TEST(PaperLocal, ASuperblockOf64KThenOnesOf4M) {
  std::set<LocalSuperblock*> seen;
  for (size_t i = 0; i < 10'000; ++i) seen.insert(superblock_of(take(1000)));
  for (LocalSuperblock* superblock : seen) EXPECT_EQ(address_of(superblock) % superblock->head.size, 0u);
  EXPECT_EQ(seen.size(), 4u);
  EXPECT_EQ(heap().superblocks_64k.read(), 1u);
  EXPECT_EQ(heap().superblocks_4m.read(), 3u);
  for (size_t i = 0; i < 3000; ++i) EXPECT_FALSE(seen.contains(superblock_of(get(i + 1)))) << "of the shared side";
  EXPECT_TRUE(hmalloc_paper::is_valid());
}

// Fig. 5, line 3: half of the current superblock, whichever that is.
TEST(PaperLocal, TheLimitIsHalfOfTheCurrentSuperblock) {
  EXPECT_FALSE(is_from_system(take(32 * kKiB - 16)));
  EXPECT_TRUE(is_from_system(take(32 * kKiB)));
  take(32 * kKiB - 16);  // no more room: 4 MB
  EXPECT_EQ(heap().current->head.size, 4 * kMiB);
  for (size_t size : {64 * kKiB, 2 * kMiB - 16}) EXPECT_EQ(superblock_of(take(size)), heap().current);
  char* large = take(2 * kMiB);
  EXPECT_TRUE(is_from_system(large));
  size_t before = large_blocks.allocated();
  hmp_local_free(large);
  EXPECT_LE(large_blocks.allocated() + 2 * kMiB, before) << "freed to the system directly";
}

// Line 4 asks for more space than the request, not for as much.
TEST(PaperLocal, ARequestOfAllThatIsLeftIsNotServedHere) {
  take(16);
  while (left() > 128 + 8192) take(8192);
  take(left() - 128);
  LocalSuperblock* superblock = heap().current;
  EXPECT_NE(superblock_of(take(128)), superblock);
  EXPECT_EQ(heap().lsl.first, superblock);
}

// The list is searched before the system is asked.  In the paper a superblock that is found stays in the list, and is
// inserted a second time: a ring.
TEST(PaperLocal, SuperblocksChangePlacesForEver) {
  std::map<LocalSuperblock*, std::vector<char*>> live;
  auto take_one = [&] {
    char* block = take(20'000);
    live[superblock_of(block)].push_back(block);
  };
  while (live.size() < 2) take_one();
  for (int round = 0; round < 60; ++round) {
    LocalSuperblock *current = heap().current, *other = heap().lsl.first;
    ASSERT_EQ(other, heap().lsl.last) << "who is current is not in the list";
    for (char* block : live[other]) hmp_local_free(block);  // it is clear again
    live[other].clear();
    while (heap().current == current) take_one();
    ASSERT_EQ(heap().current, other);
    ASSERT_TRUE(heap().is_valid()) << round;
  }
  EXPECT_EQ(heap().superblocks_4m.read(), 1u);
}

TEST(PaperLocalMisuse, EndsTheProgramWithTheNameThatWasCalled) {
  void *local = hmp_local_alloc(100), *shared = hmp_shared_alloc(100), *inside = static_cast<char*>(local) + 8;
  int on_stack[16];
  EXPECT_EXIT(hmp_shared_free(on_stack), aborted, "^hmalloc_paper: hmp_shared_free.*not a block of hmalloc_paper\n$");
  EXPECT_EXIT(hmp_local_free(on_stack), aborted, "^hmalloc_paper: hmp_local_free.*not a local block of hmalloc_paper\n$");
  EXPECT_EXIT(hmp_local_free(shared), aborted, "not a local block of hmalloc_paper\n$");
  EXPECT_EXIT(hmp_shared_free(local), aborted, "a local block: hmp_local_free is for it\n$");
  EXPECT_EXIT((void)usable(local), aborted, "not a shared block");
  EXPECT_EXIT(hmp_local_free(inside), aborted, "not a local block, or freed already\n$");
  EXPECT_EXIT(on_thread([=] { hmp_local_free(local); }), aborted, "a local block of another thread's heap\n$");
  hmp_local_free(local);  // the superblock is clear: only now a second free can be told
  EXPECT_EXIT(hmp_local_free(local), aborted, "not a local block, or freed already\n$");
}

// What the C ABI asks beyond the paper, of the functions that the contract's tests do not call.
TEST(PaperApi, BothSidesKeepTheRulesOfMalloc) {
  for (auto* allocate : {hmp_shared_alloc, hmp_local_alloc}) {
    auto* free = allocate == hmp_local_alloc ? hmp_local_free : hmp_shared_free;
    EXPECT_NE(allocate(0), allocate(0));
    free(nullptr);
    for (size_t size : {SIZE_MAX, SIZE_MAX - 71, size_t{PTRDIFF_MAX} + 1, size_t{PTRDIFF_MAX}, size_t{PTRDIFF_MAX} / 2}) {
      errno = 0;
      EXPECT_EQ(allocate(size), nullptr) << size;
      EXPECT_EQ(errno, ENOMEM);
    }
    for (size_t size : {1, 100, 5000, 40'000, 4'000'000}) {
      void* block = memset(allocate(size), 1, size);
      EXPECT_EQ(address_of(block) % 16, 0u) << size;
      errno = 4242;
      free(block);
      EXPECT_EQ(errno, 4242) << size;
    }
  }
}

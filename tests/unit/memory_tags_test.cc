// Memory tags in the hardened library, on AArch64; run with HMALLOC_TAGS=1.
#include "base/memory_tags.h"

#include <unistd.h>

#include <algorithm>
#include <map>

#include "hardened.h"

using namespace hm;
using namespace hm::test;

namespace {

struct Tags : testing::Test {
  void SetUp() override {
    if (!memory_tags.are_on()) GTEST_SKIP() << "this processor has no memory tags, or HMALLOC_TAGS=1 is not set";
  }
};

unsigned tag_of(const void* pointer) { return address_of(pointer) >> 56 & 15; }
uintptr_t place_of(const void* pointer) { return address_of(memory_tags.strip(pointer)); }
char read_from(const char* block, ptrdiff_t at) { return const_cast<const volatile char*>(block)[at]; }

// A block in the place of one that was freed, with another tag.
char* allocate_in_place_of(const char* freed, size_t size) {
  for (;;) {
    char* block = allocate(size);
    if (place_of(block) == place_of(freed) && tag_of(block) != tag_of(freed)) return block;
    hm_free(block);
  }
}

}  // namespace

TEST_F(Tags, NeighboursHaveDifferentTags) {
  for (size_t size : {8, 24, 100, 1000, 20000}) {
    std::vector<void*> blocks = allocate_many(200, size);
    std::map<uintptr_t, unsigned> tags;
    std::set<unsigned> different;
    for (void* block : blocks) {
      fill(block, size, 1);
      tags[place_of(block)] = tag_of(block);
      different.insert(tag_of(block));
    }
    EXPECT_EQ(different.count(0), 0u);
    EXPECT_GT(different.size(), 10u);
    size_t capacity = Superblock::of(place_of(blocks[0])).block_size, pairs = 0;
    for (auto [place, tag] : tags) {
      auto next = tags.find(place + capacity);
      if (next == tags.end() || Superblock::of(place).start != Superblock::of(next->first).start) continue;
      EXPECT_NE(tag, next->second);
      ++pairs;
    }
    EXPECT_GT(pairs, 10u);
    for (void* block : blocks) EXPECT_TRUE(matches(block, size, 1));
    free_all(blocks);
  }
}

TEST_F(Tags, AnAccessAfterTheFreeIsAFault) {
  for (size_t size : {1, 100, 4000, 30000}) {
    char* block = allocate(size);
    EXPECT_EXIT((hm_free(block), read_from(block, 0)), kFault, "") << size;
    EXPECT_EXIT((hm_free(block), write_to(block, static_cast<ptrdiff_t>(size) - 1, 'x')), kFault, "") << size;
    EXPECT_EXIT(on_thread([=] { hm_free(block), read_from(block, 0); }), kFault, "") << size;
    hm_free(block);
  }
}

TEST_F(Tags, AnAccessBehindTheLastGranuleIsAFault) {
  char* block = allocate(40);
  read_from(block, 47);
  EXPECT_EXIT(read_from(block, 48), kFault, "");
  EXPECT_EXIT(read_from(block, -1), kFault, "");
  EXPECT_EXIT((write_to(block, 40, 'x'), hm_free(block)), kAborted, kBehind) << "within it the canary tells";
  hm_free(block);
}

TEST_F(Tags, AStalePointerIsOfNoUse) {
  char* stale = allocate(100);
  hm_free(stale);
  char* block = allocate_in_place_of(stale, 100);
  EXPECT_EXIT(read_from(stale, 0), kFault, "");
  EXPECT_EXIT(hm_free(stale), kAborted,
              "not the pointer that the block was handed out by.*\n  byte 0 of the block of 112 bytes");
  EXPECT_EXIT(std::ignore = hm_realloc(stale, 300), kAborted, "hm_realloc.*not the pointer");
  EXPECT_EXIT((void)hm_usable_size(stale), kAborted, "hm_usable_size.*not the pointer");
  hm_free(block);
  EXPECT_EXIT(hm_free(block), kAborted, kDoubleFree) << "as without tags";
}

TEST_F(Tags, ABlockThatGrowsInPlaceKeepsItsTag) {
  char* block = allocate(90);
  fill(block, 90, 3);
  auto* same = static_cast<char*>(hm_realloc(block, 100));
  ASSERT_EQ(same, block);
  EXPECT_TRUE(matches(same, 90, 3));
  write_to(same, 99, 'x');
  EXPECT_EXIT(read_from(same, 112), kFault, "");
  same = static_cast<char*>(hm_realloc(same, 70));
  ASSERT_EQ(same, block);
  EXPECT_EXIT(read_from(same, 80), kFault, "");
  auto* moved = static_cast<char*>(hm_realloc(same, 1000));
  EXPECT_TRUE(matches(moved, 70, 3));
  EXPECT_EXIT(read_from(same, 0), kFault, "");
  hm_free(moved);
}

TEST_F(Tags, LargeBlocksHaveNone) {
  void* block = hm_malloc(100'000);
  EXPECT_EQ(tag_of(block), 0u);
  hm_free(block);
}

TEST_F(Tags, AlignedZeroedAndSharedBlocksHaveThem) {
  for (void* block : {hm_aligned_alloc(256, 100), hm_calloc(10, 10), hm_shared_alloc(100), hm_local_alloc(100)}) {
    EXPECT_NE(tag_of(block), 0u);
    fill(block, 100, 2);
    hm_free(block);
  }
}

// The system takes tagged pointers, in each thread and in the child of a fork.
TEST_F(Tags, TheSystemReadsAndWritesThem) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  auto pass = [&] {
    char *from = allocate(50), *to = allocate(50);
    fill(from, 50, 7);
    EXPECT_EQ(write(ends[1], from, 50), 50);
    EXPECT_EQ(read(ends[0], to, 50), 50);
    EXPECT_TRUE(matches(to, 50, 7));
    hm_free(from);
    hm_free(to);
  };
  pass();
  on_thread(pass);
  EXPECT_EXIT((pass(), _exit(testing::Test::HasFailure())), testing::ExitedWithCode(0), "");
  close(ends[0]);
  close(ends[1]);
}

TEST_F(Tags, OtherThreadsUseAndFreeThem) {
  std::vector<void*> blocks = allocate_many(1000, 60);
  for (void* block : blocks) fill(block, 60, 5);
  on_thread([&] {
    for (void* block : blocks) EXPECT_TRUE(matches(block, 60, 5));
    EXPECT_GE(hm_check(), 1000u);
    free_all(blocks);
  });
  hm_collect();
  free_all(allocate_many(5000, 60));
}

TEST_F(Tags, ASecondFreeIsFoundWhenTheMemoryHasGoneBack) {
  std::vector<void*> blocks = allocate_many(1000, 20000);
  free_all(blocks);
  hm_collect();
  auto gone = std::find_if(blocks.begin(), blocks.end(),
                           [](void* block) { return AddressMap::kind(place_of(block)) == ChunkKind::kGone; });
  ASSERT_NE(gone, blocks.end());
  EXPECT_EXIT(hm_free(*gone), kAborted, "double free, or never a block\n  a block was there once");
  EXPECT_EXIT(std::ignore = hm_realloc(*gone, 300), kAborted, "double free, or never a block");
}

TEST_F(Tags, NobodySwitchesThemOff) { EXPECT_EXIT(memset(static_cast<void*>(&memory_tags), 0, 1), kFault, ""); }

#include "baselines/common/large_blocks.h"

#include <cerrno>
#include <random>

#include "base/os_pages.h"
#include "contract_support.h"

using namespace hm;

namespace {

constinit LargeBlocks large;
constinit LargeBlocks keeping(true);

ChunkKind kind_of(const void* block) { return AddressMap::kind(address_of(block)); }
char* get(size_t size, size_t alignment = kGranule, LargeBlocks& from = large) {
  auto* block = static_cast<char*>(from.allocate(size, alignment));
  EXPECT_NE(block, nullptr);
  EXPECT_EQ(address_of(block) % alignment, 0u) << size << " " << alignment;
  return block;
}
char* kept(size_t size) { return get(size, kGranule, keeping); }
void give(void* block, LargeBlocks& to = large) { to.free(block, "free"); }
char* resize(char* block, size_t size) { return static_cast<char*>(large.resize(block, size)); }
size_t usable(const void* block) { return large.usable_size(block, "test"); }
void mark_ends(char* block, size_t size) {
  block[0] = 'a';
  block[size - 1] = 'z';
}

}  // namespace

TEST(LargeBlocks, AreRunsOfPagesUpToOneMegabyteAndMappingsAbove) {
  size_t page = os::page_size();
  for (size_t size : {size_t{1}, page, page + 1, 40 * kKiB, kMiB - 1, kMiB}) {
    char* block = get(size, page);
    EXPECT_EQ(kind_of(block), ChunkKind::kRuns) << size;
    EXPECT_EQ(usable(block), align_up(size, page));
    EXPECT_TRUE(LargeBlocks::holds(block));
    memset(block, 1, usable(block));
  }
  for (size_t size : {kMiB + 1, 5 * kMiB}) {
    char* block = get(size, kLine);
    EXPECT_EQ(kind_of(block), ChunkKind::kHuge) << size;
    EXPECT_GE(usable(block), size);
    EXPECT_LT(usable(block), size + page);
    memset(block, 1, usable(block));
  }
  EXPECT_TRUE(large.is_valid());
}

TEST(LargeBlocks, TheAccountIsExact) {
  size_t page = os::page_size();
  char* run = get(3 * page - 5);
  EXPECT_EQ(large.allocated(), 3 * page);
  EXPECT_EQ(large.mapped(), kChunk);
  char* huge = get(4 * kMiB);
  EXPECT_EQ(large.allocated(), 3 * page + 4 * kMiB + page);
  EXPECT_EQ(large.mapped(), kChunk + 4 * kMiB + page);
  huge = resize(huge, 6 * kMiB);
  EXPECT_EQ(large.mapped(), kChunk + 6 * kMiB + page);
  give(huge);
  give(run);
  EXPECT_EQ(large.allocated(), 0u);
  EXPECT_EQ(large.mapped(), kChunk);
  EXPECT_TRUE(large.is_valid());
}

TEST(LargeBlocks, AFreedBlockReadsAsZeroWhenItComesAgain) {
  for (size_t size : {40 * kKiB, kMiB, 3 * kMiB}) {
    char* block = get(size);
    give(memset(block, 1, size));
    block = get(size);
    EXPECT_TRUE(large.comes_zeroed(block));
    EXPECT_TRUE(contract::holds_only(block, usable(block), 0));
    give(block);
  }
}

TEST(LargeBlocks, FreedNeighboursAreOneRun) {
  char* blocks[4];  // of the same 2 MB
  for (char*& block : blocks) block = get(400 * kKiB);
  EXPECT_EQ(blocks[1], blocks[0] + 400 * kKiB);
  give(blocks[1]);
  give(blocks[2]);
  EXPECT_EQ(get(800 * kKiB), blocks[1]);
  EXPECT_EQ(large.mapped(), kChunk);
  get(800 * kKiB);
  get(kMiB);
  EXPECT_EQ(large.mapped(), 2 * kChunk);
  give(blocks[0]);
  give(blocks[1]);
  EXPECT_EQ(get(kMiB), blocks[0]) << "a full chunk is searched again once something in it was freed";
  EXPECT_TRUE(large.is_valid());
}

TEST(LargeBlocks, ImpossibleSizesAreRefused) {
  char* block = get(2 * kMiB);
  errno = 4242;
  for (size_t size : {SIZE_MAX, SIZE_MAX / 2, size_t{PTRDIFF_MAX}, size_t{1} << 62, size_t{1} << 50}) {
    for (size_t alignment : {size_t{16}, kMiB, 8 * kMiB}) EXPECT_EQ(large.allocate(size, alignment), nullptr);
    EXPECT_EQ(resize(block, size), nullptr);
  }
  for (size_t alignment : {size_t{1} << 63, size_t{1} << 50}) EXPECT_EQ(large.allocate(1, alignment), nullptr);
  give(block);
  EXPECT_EQ(errno, 4242);
  EXPECT_EQ(large.mapped(), 0u);
}

TEST(LargeBlocks, ExaminesItself) {
  char* block = get(40 * kKiB);
  ASSERT_TRUE(large.is_valid());
  // The flags of the chunk's pages lie behind a link, a number, and the lengths of its runs.
  char* flags = reinterpret_cast<char*>(align_down(address_of(block), kChunk)) + 16 + 512 * 2;
  flags[400] = 1;
  EXPECT_FALSE(large.is_valid()) << "a used page without a run";
  flags[400] = 0;
  flags[address_of(block) % kChunk / os::page_size() + 1] = 0;
  EXPECT_FALSE(large.is_valid()) << "a run with a free page";
}

// Bad pointers of a whole program are tests/misuse; here the places that only this code knows.
TEST(LargeBlocksDeathTest, TheirHeadersAreNoBlocks) {
  char *run = get(40 * kKiB), *huge = get(3 * kMiB), *far = get(2 * kMiB, 8 * kMiB);
  EXPECT_EQ(kind_of(far), ChunkKind::kHugeAligned);
  EXPECT_EQ(kind_of(far - kChunk), ChunkKind::kHuge);
  void* headers[] = {reinterpret_cast<void*>(align_down(address_of(run), kChunk)), huge - kLine, far - kChunk,
                     far - kChunk + kLine};
  for (void* header : headers) {
    EXPECT_DEATH(give(header), "free\\(0x[0-9a-f]+\\): not a block, or freed already");
    EXPECT_DEATH(usable(header), "test.*not a block");
    EXPECT_EQ(large.resize(header, 8 * kMiB), nullptr);
  }
  EXPECT_EQ(resize(far, 9 * kMiB), nullptr) << "it would lose its alignment";
  give(far);
  EXPECT_EQ(kind_of(far), ChunkKind::kForeign);
  EXPECT_EQ(kind_of(far - kChunk), ChunkKind::kForeign);
}

TEST(LargeBlocksDeathTest, OfTwoThreadsThatFreeABlockOneFindsOut) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (size_t size : {40 * kKiB, 3 * kMiB})
    EXPECT_DEATH(
        {
          void* block = memset(get(size), 1, size);
          std::thread other([=] { give(block); });
          give(block);
          other.join();
        },
        "not a block, or freed already");
}

TEST(LargeBlocks, ThreadsShareThem) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      std::mt19937 random(t);
      LargeBlocks& blocks = t % 2 == 0 ? large : keeping;
      for (int i = 0; i < 200; ++i) {
        size_t size = 1 + random() % (i % 10 == 0 ? 4 * kMiB : 300 * kKiB);
        char* block = get(size, kGranule, blocks);
        ASSERT_TRUE(!blocks.comes_zeroed(block) || block[size / 2] == 0);
        memset(block, 'a', size);
        if (void* moved = blocks.resize(block, size + kMiB)) block = static_cast<char*>(moved);
        ASSERT_EQ(block[size - 1], 'a');
        give(block, blocks);
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (LargeBlocks* blocks : {&large, &keeping}) {
    EXPECT_TRUE(blocks->is_valid());
    EXPECT_EQ(blocks->allocated(), 0u);
  }
}

TEST(LargeBlocks, MappingsAreResizedWithTheirContents) {
  size_t size = 2 * kMiB, alignment = 64 * kKiB;
  char* block = get(size, alignment);
  while (size < 20 * kMiB) {
    mark_ends(block, size);
    char *blocker = get(2 * kMiB), *old = block;  // often behind the block, so that it must move
    size_t bigger = size + size / 2;
    block = resize(block, bigger);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(address_of(block) % alignment, 0u);
    EXPECT_EQ(LargeBlocks::holds(old), old == block);
    ASSERT_EQ(block[0], 'a');
    ASSERT_EQ(block[size - 1], 'z');
    ASSERT_TRUE(contract::holds_only(block + usable(block) - 1000, 1000, 0)) << "pages that are new";
    ASSERT_GE(usable(block), bigger);
    size = bigger;
    give(blocker);
  }
  EXPECT_EQ(resize(block, 2 * kMiB), block);
  EXPECT_LT(usable(block), 2 * kMiB + os::page_size());
  EXPECT_EQ(resize(block, kMiB), nullptr) << "a size for a run";
  EXPECT_EQ(block[0], 'a');
  EXPECT_EQ(resize(get(kMiB), 2 * kMiB), nullptr) << "runs stay";
  give(block);
  EXPECT_TRUE(large.is_valid());
}

// ---- For allocators that never return memory. ----

TEST(LargeBlocksKeeping, FreedOnesStay) {
  for (size_t size : {40 * kKiB, 3 * kMiB}) {
    char* block = kept(size);
    memset(block, 1, size);
    size_t mapped = keeping.mapped();
    uint64_t calls = os::calls();
    give(block, keeping);
    EXPECT_EQ(keeping.mapped(), mapped);
    EXPECT_EQ(keeping.allocated(), 0u);
    EXPECT_TRUE(keeping.is_valid());
    EXPECT_EQ(kept(size - 1000), block);
    EXPECT_EQ(os::calls(), calls);
    EXPECT_FALSE(keeping.comes_zeroed(block));
    EXPECT_EQ(block[100], 1);
    give(block, keeping);
  }
}

TEST(LargeBlocksKeeping, AMappingServesWhatIsAtLeastHalfAsLargeTheBestFirst) {
  char *ten = kept(10 * kMiB), *six = kept(6 * kMiB);
  for (bool six_first : {true, false}) {
    give(six_first ? six : ten, keeping);
    give(six_first ? ten : six, keeping);
    EXPECT_EQ(kept(11 * kMiB / 2), six);
    EXPECT_EQ(kept(9 * kMiB), ten);
  }
  give(ten, keeping);
  char* four = kept(4 * kMiB);
  EXPECT_NE(four, ten);
  EXPECT_EQ(keeping.resize(four, 9 * kMiB), nullptr) << "a mapping does not grow where the caller finds another";
  EXPECT_EQ(kept(7 * kMiB), ten);
  EXPECT_EQ(keeping.resize(ten, 3 * kMiB), nullptr) << "to shrink it would be to return memory";
  EXPECT_NE(keeping.resize(four, 9 * kMiB), nullptr);
  EXPECT_TRUE(keeping.is_valid());
}

// Slabs, and what both variants do with a block by its size.
#include "ar_malloc_support.h"

using namespace ar_malloc_test;

namespace {

// A slab outside every arena's lists.
Slab& cut_slab(ClassIndex c) {
  auto* slab = static_cast<Slab*>(slab_memory.take());
  slab->cut(arenas[0], c);
  return *slab;
}

}  // namespace

TEST(Slab, HoldsAsManyBlocksAsFitItAndNoTwoOverlap) {
  for (size_t c = 0; c < kSlabClasses; ++c) {
    Slab& slab = cut_slab(ClassIndex(c));
    size_t size = size_of(ClassIndex(c));
    EXPECT_GE(slab.blocks * size, kSlab - 2 * kInSlabs);
    uintptr_t last = address_of(&slab) + sizeof(Slab);
    for (size_t i = 0; i < slab.blocks; ++i) {
      void* block = slab.take();
      EXPECT_GE(address_of(block), last);
      EXPECT_EQ(address_of(block) % (size & -size), 0u) << size;
      EXPECT_TRUE(slab.starts_block(block));
      EXPECT_FALSE(slab.has_free(block));
      last = address_of(block) + size;
    }
    EXPECT_LE(last, address_of(&slab) + kSlab);
    EXPECT_EQ(slab.free, 0u);
    EXPECT_TRUE(slab.is_valid());
  }
}

TEST(Slab, HandsOutTheLowestFreeBlock) {
  Slab& slab = cut_slab(class_of(16));
  std::vector<void*> blocks;
  for (size_t i = 0; i < slab.blocks; ++i) blocks.push_back(slab.take());
  for (size_t i : {3000u, 70u, 2u, 500u}) slab.give_back(blocks[i]);
  for (size_t i : {2u, 70u, 500u, 3000u}) EXPECT_EQ(slab.take(), blocks[i]);
}

TEST(Slab, KnowsWhereItsBlocksStart) {
  Slab& slab = cut_slab(class_of(80));
  char* block = static_cast<char*>(slab.take());
  for (int offset : {16, 8, -80}) EXPECT_FALSE(slab.starts_block(block + offset)) << offset;
  EXPECT_FALSE(slab.starts_block(&slab)) << "the header";
  EXPECT_TRUE(slab.starts_block(block + (slab.blocks - 1) * 80));
  EXPECT_FALSE(slab.starts_block(block + slab.blocks * 80)) << "behind the last";
  auto* never_cut = static_cast<Slab*>(slab_memory.take());
  EXPECT_FALSE(never_cut->starts_block(reinterpret_cast<char*>(never_cut) + 1024));
}

TEST(Blocks, EachSizeHasASlabOfItsClassUpToEightKilobytes) {
  for (size_t size = 1; size <= kInSlabs; size += size < 130 ? 1 : 61) {
    char* block = get(size);
    ASSERT_EQ(AddressMap::kind(address_of(block)), ChunkKind::kRegions);
    EXPECT_EQ(slab_of(block).block_size, size_of(class_of(size)));
    EXPECT_EQ(usable(block), size_of(class_of(size)));
  }
  EXPECT_EQ(AddressMap::kind(address_of(get(kInSlabs))), ChunkKind::kRegions);
  EXPECT_EQ(AddressMap::kind(address_of(get(kInSlabs + 1))), ChunkKind::kRuns);
  EXPECT_TRUE(ar_malloc::is_valid());
}

TEST(Blocks, TheMemoryOfFreedOnesIsNeverReturned) {
  size_t sizes[] = {16, 1000, 3000, 40 * kKiB, 500 * kKiB, 3 * kMiB};
  auto cycle = [&] {
    std::vector<void*> blocks;
    for (size_t size : sizes)
      for (size_t bytes = 0; bytes < 6 * kMiB; bytes += size) blocks.push_back(memset(get(size), 1, size));
    uint64_t calls = os::calls();
    give_all(blocks);
    EXPECT_EQ(os::calls(), calls) << "the system hears of no free";
  };
  cycle();
  size_t mapped = ar_malloc::usage().mapped;
  uint64_t calls = os::calls();
  cycle();
  EXPECT_EQ(ar_malloc::usage().mapped, mapped);
  EXPECT_EQ(os::calls(), calls) << "nor of a malloc that finds the same again";
}

TEST(Blocks, OnlyFreshMappingsComeZeroed) {
  for (size_t size : {100, 2000, 50000}) EXPECT_FALSE(comes_zeroed(get(size)));
  char* block = get(3 * kMiB);
  EXPECT_TRUE(comes_zeroed(block));
  give(memset(block, 1, 3 * kMiB));
  EXPECT_EQ(get(3 * kMiB), block);
  EXPECT_FALSE(comes_zeroed(block));
}

// Each of these breaks one thing that is_valid() looks at.
TEST(Validity, FindsWhatIsBroken) {
  std::vector<void*> blocks = get_many(20, 5000);  // two slabs
  give(blocks.front());
  give(blocks.back());
  EXPECT_TRUE(ar_malloc::is_valid());
  Slab &first = slab_of(blocks.front()), &second = slab_of(blocks.back());
  first.is_free[0] ^= 4;
  EXPECT_FALSE(ar_malloc::is_valid()) << "bits that do not add up";
  first.is_free[0] ^= 4;
  first.size_class = class_of(100);
  EXPECT_FALSE(ar_malloc::is_valid()) << "a slab of another class";
  first.size_class = class_of(5000);
  EXPECT_TRUE(ar_malloc::is_valid());
  Slab& last = first.next == nullptr ? first : second;
  last.previous->next = nullptr;
  EXPECT_FALSE(ar_malloc::is_valid()) << "a slab in no list";
}

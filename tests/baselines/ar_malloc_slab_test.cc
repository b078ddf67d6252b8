// Slabs, and what both variants do with a block by its size.
#include "ar_malloc_support.h"

using namespace hm;
using namespace hm::ar_malloc;

namespace {

// A slab outside every arena.
Slab& cut_slab(Arena& owner, ClassIndex c) {
  auto* slab = static_cast<Slab*>(slab_memory.take());
  slab->cut(owner, c);
  return *slab;
}

}  // namespace

TEST(Slab, HoldsAsManyBlocksAsFitItAndNoTwoOverlap) {
  for (size_t c = 0; c < kSlabClasses; ++c) {
    Slab& slab = cut_slab(arenas[0], ClassIndex(c));
    size_t size = size_of(ClassIndex(c)), blocks = slab.blocks;
    EXPECT_GE(blocks * size, kSlab - 2 * kInSlabs);
    uintptr_t last = address_of(&slab) + sizeof(Slab);
    for (size_t i = 0; i < blocks; ++i) {
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
  Slab& slab = cut_slab(arenas[0], class_of(16));
  std::vector<void*> blocks;
  for (size_t i = 0; i < slab.blocks; ++i) blocks.push_back(slab.take());
  for (size_t i : {3000u, 70u, 2u, 500u}) slab.give_back(blocks[i]);
  for (size_t i : {2u, 70u, 500u, 3000u}) EXPECT_EQ(slab.take(), blocks[i]);
}

TEST(Slab, KnowsWhereItsBlocksStart) {
  Slab& slab = cut_slab(arenas[0], class_of(80));
  char* block = static_cast<char*>(slab.take());
  EXPECT_FALSE(slab.starts_block(block + 16));
  EXPECT_FALSE(slab.starts_block(block + 8));
  EXPECT_FALSE(slab.starts_block(&slab)) << "the header";
  EXPECT_FALSE(slab.starts_block(block - 80)) << "the header, a block's size before the first";
  EXPECT_TRUE(slab.starts_block(block + (slab.blocks - 1) * 80));
  EXPECT_FALSE(slab.starts_block(block + slab.blocks * 80)) << "behind the last";
  auto* never_cut = static_cast<Slab*>(slab_memory.take());
  EXPECT_FALSE(never_cut->starts_block(reinterpret_cast<char*>(never_cut) + 1024));
}

TEST(Slab, FindsThatItsBitsDoNotAddUp) {
  Slab& slab = cut_slab(arenas[0], class_of(512));
  slab.take();
  EXPECT_TRUE(slab.is_valid());
  slab.is_free[0] ^= 4;
  EXPECT_FALSE(slab.is_valid());
}

TEST(Blocks, EachSizeHasASlabOfItsClass) {
  for (size_t size = 1; size <= kInSlabs; size += size < 130 ? 1 : 61) {
    void* block = allocate(size);
    ASSERT_EQ(AddressMap::kind(address_of(block)), ChunkKind::kRegions);
    EXPECT_EQ(slab_of(block).block_size, size_of(class_of(size)));
    EXPECT_EQ(usable_size(block, "test"), size_of(class_of(size)));
    EXPECT_EQ(address_of(block) % kGranule, 0u);
  }
  EXPECT_TRUE(is_valid());
}

TEST(Blocks, AboveEightKilobytesTheyAreNoSlabs) {
  void* last = allocate(kInSlabs);
  void* first = allocate(kInSlabs + 1);
  EXPECT_EQ(AddressMap::kind(address_of(last)), ChunkKind::kRegions);
  EXPECT_EQ(AddressMap::kind(address_of(first)), ChunkKind::kRuns);
  EXPECT_GE(usable_size(first, "test"), kInSlabs + 1);
  ar_malloc::free(last);
  ar_malloc::free(first);
  EXPECT_TRUE(is_valid());
}

TEST(Blocks, TheMemoryOfFreedOnesIsNeverReturned) {
  size_t sizes[] = {16, 1000, 3000, 40 * kKiB, 500 * kKiB, 3 * kMiB};
  auto cycle = [&] {
    uint64_t calls = 0;
    std::vector<void*> blocks;
    for (size_t size : sizes)
      for (size_t bytes = 0; bytes < 6 * kMiB; bytes += size) blocks.push_back(memset(allocate(size), 1, size));
    calls = os::calls();
    free_all(blocks);
    EXPECT_EQ(os::calls(), calls) << "the system hears of no free";
  };
  cycle();
  size_t mapped = usage().mapped;
  uint64_t calls = os::calls();
  cycle();
  EXPECT_EQ(usage().mapped, mapped);
  EXPECT_EQ(os::calls(), calls) << "nor of a malloc that finds the same again";
}

TEST(Blocks, OnlyFreshMappingsComeZeroed) {
  for (size_t size : {size_t{100}, size_t{2000}, size_t{50000}}) EXPECT_FALSE(comes_zeroed(allocate(size)));
  void* block = allocate(3 * kMiB);
  EXPECT_TRUE(comes_zeroed(block));
  ar_malloc::free(memset(block, 1, 3 * kMiB));
  EXPECT_EQ(allocate(3 * kMiB), block);
  EXPECT_FALSE(comes_zeroed(block));
}

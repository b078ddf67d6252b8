// The calls that a baseline has, in every approach: alignment, sizes, misuse, the account.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/sizes.h"
#include "baselines/vvmalloc/vvmalloc.h"

using namespace hm;

namespace {

bool is_filled(const void* block, size_t size, unsigned char with) {
  const auto* bytes = static_cast<const unsigned char*>(block);
  for (size_t i = 0; i < size; ++i)
    if (bytes[i] != with) return false;
  return true;
}

}  // namespace

TEST(Calls, EverySizeIsAlignedAndItsOwn) {
  std::vector<void*> blocks;
  size_t before = vvmalloc::usage().allocated;
  for (size_t size = 1; size < 4 * kMiB; size += size / 7 + 1) {
    void* block = vvmalloc::allocate(size);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(address_of(block) % 16, 0u);
    EXPECT_GE(vvmalloc::usable_size(block, "test"), size);
    memset(block, static_cast<int>(blocks.size() & 0xff), vvmalloc::usable_size(block, "test"));
    blocks.push_back(block);
  }
  EXPECT_TRUE(vvmalloc::is_valid());
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_TRUE(is_filled(blocks[i], vvmalloc::usable_size(blocks[i], "test"), static_cast<unsigned char>(i)));
    vvmalloc::deallocate(blocks[i], "test");
  }
  EXPECT_TRUE(vvmalloc::is_valid());
  EXPECT_EQ(vvmalloc::usage().allocated, before);
}

TEST(Calls, EveryAlignment) {
  size_t before = vvmalloc::usage().allocated;
  for (size_t alignment = 32; alignment <= 16 * kMiB; alignment *= 2)
    for (size_t size : {size_t{1}, size_t{100}, size_t{5000}, size_t{70000}, 3 * kMiB}) {
      void* block = vvmalloc::allocate_aligned(alignment, size);
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(address_of(block) % alignment, 0u);
      memset(block, 0x5a, vvmalloc::usable_size(block, "test"));
      EXPECT_TRUE(vvmalloc::is_valid()) << alignment << " " << size;
      vvmalloc::deallocate(block, "test");
    }
  EXPECT_TRUE(vvmalloc::is_valid());
  EXPECT_EQ(vvmalloc::usage().allocated, before);
}

TEST(Calls, NoMemoryForWhatIsTooLarge) {
  for (size_t size : {(size_t{1} << 46) + 1, size_t{1} << 48, size_t{PTRDIFF_MAX}}) {
    EXPECT_EQ(vvmalloc::allocate(size), nullptr);
    EXPECT_EQ(vvmalloc::allocate_aligned(64, size), nullptr);
    EXPECT_EQ(vvmalloc::allocate_aligned(size_t{1} << 62, 1), nullptr);
  }
  EXPECT_TRUE(vvmalloc::is_valid());
}

TEST(Calls, WhatIsFreedIsUsedAgain) {
  for (size_t size : {size_t{100}, size_t{40000}, 5 * kMiB}) {
    vvmalloc::deallocate(vvmalloc::allocate(size), "test");
    size_t mapped = vvmalloc::usage().mapped;
    for (int i = 0; i < 1000; ++i) vvmalloc::deallocate(vvmalloc::allocate(size), "test");
    EXPECT_EQ(vvmalloc::usage().mapped, mapped) << size;
  }
}

TEST(Calls, AnAccountOfTheHeap) {
  vvmalloc::Counters before = vvmalloc::counters();
  void* block = vvmalloc::allocate(300 * kMiB);
  vvmalloc::Counters after = vvmalloc::counters();
  EXPECT_EQ(after.extensions, before.extensions + 1);
  EXPECT_GT(after.heap_lock_ns, before.heap_lock_ns);  // there was a system call within
  EXPECT_GE(vvmalloc::usage().mapped, 300 * kMiB);
  vvmalloc::deallocate(block, "test");
}

TEST(Calls, AHugeRequestLeavesTheSegmentInUse) {
  auto* before = static_cast<char*>(vvmalloc::allocate(300 * kKiB));
  void* huge = vvmalloc::allocate(300 * kMiB);
  auto* after = static_cast<char*>(vvmalloc::allocate(300 * kKiB));
  EXPECT_GT(after, before);
  EXPECT_LT(after, before + 2 * kMiB) << "behind the one before, not behind the huge one";
  for (void* block : {static_cast<void*>(before), huge, static_cast<void*>(after)}) vvmalloc::deallocate(block, "test");
  EXPECT_TRUE(vvmalloc::is_valid()) << "of all segments";
}

TEST(CallsDeathTest, FreedTwice) {
  void* block = vvmalloc::allocate(100);
  void* neighbour = vvmalloc::allocate(100);
  vvmalloc::deallocate(block, "free");
  EXPECT_DEATH(vvmalloc::deallocate(block, "free"), "free\\(0x[0-9a-f]+\\): is free");
  EXPECT_DEATH(vvmalloc::usable_size(block, "malloc_usable_size"), "malloc_usable_size");
  vvmalloc::deallocate(neighbour, "free");  // the two become one block: the second keeps its tag within it
  EXPECT_DEATH(vvmalloc::deallocate(neighbour, "free"), "is free");
}

TEST(CallsDeathTest, ALargeBlockFreedTwice) {
  void* block = vvmalloc::allocate_aligned(256 * kKiB, 2 * kMiB);
  vvmalloc::deallocate(block, "free");
  EXPECT_DEATH(vvmalloc::deallocate(block, "free"), "is free");
}

TEST(CallsDeathTest, NoneOfOurs) {
  alignas(16) static char global[64];
  alignas(16) char local[64];
  EXPECT_DEATH(vvmalloc::deallocate(global + 16, "free"), "not a block of vvmalloc");
  EXPECT_DEATH(vvmalloc::deallocate(local + 16, "free"), "not a block of vvmalloc");
  EXPECT_DEATH(vvmalloc::deallocate(reinterpret_cast<void*>(0x10), "free"), "not a block of vvmalloc");
  EXPECT_DEATH(vvmalloc::deallocate(reinterpret_cast<void*>(~uintptr_t{15}), "free"), "not a block of vvmalloc");
}

TEST(CallsDeathTest, WithinABlock) {
  auto* block = static_cast<char*>(vvmalloc::allocate(1000));
  memset(block, 0x41, 1000);
  for (size_t offset : {1, 8, 16, 512}) EXPECT_DEATH(vvmalloc::deallocate(block + offset, "free"), "free\\(");
  memset(block, 0, 1000);
  for (size_t offset : {16, 512}) EXPECT_DEATH(vvmalloc::deallocate(block + offset, "free"), "free\\(");
  vvmalloc::deallocate(block, "free");
}

TEST(CallsDeathTest, WrittenBeyondItsEnd) {
  auto* block = static_cast<char*>(vvmalloc::allocate(100));
  size_t end = vvmalloc::usable_size(block, "test");
  block[end] ^= 1;
  EXPECT_DEATH(vvmalloc::deallocate(block, "free"), "its end has been overwritten");
  block[end] ^= 1;
  vvmalloc::deallocate(block, "free");
}

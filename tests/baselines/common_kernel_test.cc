// LargeBlocks and Regions on a kernel that refuses, and on one with larger pages: this program has the system calls
// in question itself.  Each test is run in a process of its own.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <set>
#include <vector>

#include "base/os_pages.h"
#include "baselines/common/large_blocks.h"
#include "baselines/common/regions.h"

namespace {

struct Refused {
  bool map = false, unmap = false, advice = false, resize = false, move = false;
};
Refused refused;
unsigned long pretended_page = 4096;

template <class... Arguments>
long unless(bool no, long call, Arguments... arguments) {
  if (!no) return syscall(call, arguments...);
  errno = ENOMEM;
  return -1;
}

}  // namespace

extern "C" {

unsigned long getauxval(unsigned long type) noexcept {
  if (type == AT_PAGESZ) return pretended_page;
  auto real = reinterpret_cast<unsigned long (*)(unsigned long)>(dlsym(RTLD_NEXT, "getauxval"));
  return real(type);
}

void* mmap(void* hint, size_t bytes, int rights, int flags, int file, off_t offset) noexcept {
  return reinterpret_cast<void*>(unless(refused.map, SYS_mmap, hint, bytes, rights, flags, file, offset));
}

int munmap(void* base, size_t bytes) noexcept { return static_cast<int>(unless(refused.unmap, SYS_munmap, base, bytes)); }

int madvise(void* base, size_t bytes, int advice) noexcept {
  return static_cast<int>(unless(refused.advice, SYS_madvise, base, bytes, advice));
}

void* mremap(void* base, size_t old_bytes, size_t new_bytes, int flags, ...) noexcept {
  va_list arguments;
  va_start(arguments, flags);
  void* target = (flags & MREMAP_FIXED) != 0 ? va_arg(arguments, void*) : nullptr;
  va_end(arguments);
  bool no = (flags & MREMAP_MAYMOVE) != 0 ? refused.move : refused.resize;
  return reinterpret_cast<void*>(unless(no, SYS_mremap, base, old_bytes, new_bytes, flags, target));
}

}  // extern "C"

using namespace hm;

namespace {

constinit LargeBlocks large;
char* get(size_t size, size_t alignment = kGranule) { return static_cast<char*>(large.allocate(size, alignment)); }
void give(void* block) { large.free(block, "free"); }

}  // namespace

TEST(Kernel, AMappingThatItDoesNotTakeBackIsUsedAgain) {
  char* block = get(3 * kMiB);
  memset(block, 1, 3 * kMiB);
  size_t mapped = large.mapped();
  refused.unmap = true;
  errno = 4242;
  give(block);
  EXPECT_EQ(errno, 4242);
  EXPECT_EQ(large.allocated(), 0u);
  EXPECT_EQ(large.mapped(), mapped);
  EXPECT_TRUE(large.is_valid());
  EXPECT_EQ(block[4096], 0) << "at least its pages went back";
  EXPECT_EQ(get(3 * kMiB), block);
  EXPECT_FALSE(large.comes_zeroed(block)) << "but not the first";
  refused.advice = true;
  memset(block, 1, 3 * kMiB);
  give(block);
  EXPECT_EQ(get(3 * kMiB), block);
  EXPECT_EQ(block[100], 1);
  EXPECT_EQ(large.mapped(), mapped);
  EXPECT_DEATH(give(block + 16), "not a block");
}

TEST(Kernel, AnAlignedMappingThatItDoesNotTakeBackIsLost) {
  char* block = get(3 * kMiB, 8 * kMiB);
  refused.unmap = true;
  give(block);
  EXPECT_EQ(large.allocated(), 0u);
  EXPECT_TRUE(large.is_valid());
  EXPECT_NE(get(3 * kMiB, 8 * kMiB), nullptr);
}

TEST(Kernel, PagesThatItDoesNotTakeBackAreCleared) {
  char* block = get(300 * kKiB);
  refused.advice = true;
  give(memset(block, 1, 300 * kKiB));
  EXPECT_EQ(get(300 * kKiB), block);
  EXPECT_TRUE(large.comes_zeroed(block));
  EXPECT_TRUE(block[0] == 0 && memcmp(block, block + 1, 300 * kKiB - 1) == 0);
}

TEST(Kernel, WhatItCannotGrowInPlaceItMovesIfItCan) {
  char* block = get(2 * kMiB);
  block[0] = 'a';
  block[2 * kMiB - 1] = 'z';
  size_t mapped = large.mapped();
  refused.resize = refused.move = true;
  EXPECT_EQ(large.resize(block, 5 * kMiB), nullptr);
  EXPECT_EQ(large.resize(block, 3 * kMiB / 2), nullptr);
  EXPECT_EQ(block[2 * kMiB - 1], 'z') << "the block is as it was";
  EXPECT_EQ(large.mapped(), mapped);
  EXPECT_GE(large.usable_size(block, "test"), 2 * kMiB);
  EXPECT_TRUE(large.is_valid());

  refused.move = false;
  char* moved = static_cast<char*>(large.resize(block, 5 * kMiB));
  ASSERT_NE(moved, nullptr);
  EXPECT_NE(moved, block);
  EXPECT_EQ(moved[0], 'a');
  EXPECT_EQ(moved[2 * kMiB - 1], 'z');
  moved[5 * kMiB - 1] = 1;
  EXPECT_FALSE(LargeBlocks::holds(block));
  EXPECT_TRUE(large.is_valid());
  EXPECT_EQ(large.resize(moved, 3 * kMiB), nullptr) << "no move to something smaller";
  give(moved);
  EXPECT_EQ(large.mapped(), 0u);
}

TEST(Kernel, NoMemoryIsNoBlock) {
  os::page_size();
  refused.map = true;
  errno = 4242;
  Regions regions(64 * kKiB);
  void* results[] = {large.allocate(5000), large.allocate(5 * kMiB), large.allocate(5, 8 * kMiB), regions.take()};
  EXPECT_EQ(errno, 4242);
  refused.map = false;
  for (void* result : results) EXPECT_EQ(result, nullptr);
  EXPECT_EQ(large.mapped() + large.allocated() + regions.taken(), 0u);
  EXPECT_NE(large.allocate(5000), nullptr);
  EXPECT_NE(regions.take(), nullptr);
  EXPECT_TRUE(large.is_valid());
}

class Pages : public testing::TestWithParam<unsigned long> {};

TEST_P(Pages, OfOtherSizes) {
  pretended_page = GetParam();
  size_t page = os::page_size();
  ASSERT_EQ(page, GetParam());
  std::vector<char*> blocks;
  for (size_t size : {size_t{1}, page - 1, page, page + 1, 200 * kKiB, kMiB, kMiB + 1, 3 * kMiB})
    for (size_t alignment : {size_t{16}, size_t{64}, 4 * kKiB, 32 * kKiB, 128 * kKiB, 512 * kKiB, kMiB, 4 * kMiB}) {
      char* block = get(size, alignment);
      ASSERT_EQ(address_of(block) % alignment, 0u) << size << " " << alignment;
      size_t usable = large.usable_size(block, "test");
      ASSERT_GE(usable, size);
      for (char* at = block; at < block + usable; at += kKiB) ASSERT_EQ(*at, 0) << "nobody else's";
      blocks.push_back(static_cast<char*>(memset(block, 1, usable)));
      ASSERT_TRUE(large.is_valid());
    }
  for (char* block : blocks) give(block);
  EXPECT_EQ(large.allocated(), 0u);
  EXPECT_TRUE(large.is_valid());
  Regions regions(8 * kKiB);  // smaller than a page
  std::set<void*> seen;
  while (seen.size() < 300) {
    void* region = regions.take();
    ASSERT_EQ(address_of(region) % (8 * kKiB), 0u);
    ASSERT_TRUE(seen.insert(region).second);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Pages, testing::Values(16384ul, 65536ul));

// The simplest of all: what it is by itself.
#include "base/address_map.h"
#include "contract_support.h"

using namespace contract;
using one_lock::is_valid, one_lock::usage;

TEST(OneLock, ClassesArePowersOfTwo) {
  for (size_t size = 1; size <= 32 * kKiB; size += size < 40 ? 1 : size / 9) {
    char* block = get(size);
    EXPECT_EQ(usable(block), std::bit_ceil(size < 16 ? 16 : size)) << size;
    EXPECT_EQ(address_of(block) % usable(block), 0u) << "aligned to its size";
  }
  EXPECT_EQ(AddressMap::kind(address_of(get(32 * kKiB))), ChunkKind::kRegions);
  EXPECT_EQ(AddressMap::kind(address_of(get(32 * kKiB + 1))), ChunkKind::kRuns);
  EXPECT_TRUE(is_valid());
}

TEST(OneLock, AFreedBlockIsTheNextOfItsClass) {
  char* block = get(100);
  char* other = get(100);
  EXPECT_EQ(other, block + 128) << "upwards through a fresh region";
  give(block);
  EXPECT_NE(get(200), block);
  EXPECT_EQ(get(128), block);
}

TEST(OneLock, TheAccountIsExactAndEveryCallIsCounted) {
  char *small = get(100), *large = get(100 * kKiB);
  EXPECT_EQ(usage().allocated, 128 + 100 * kKiB);
  EXPECT_EQ(usage().mapped, 64 * kKiB + kChunk);
  give(small);
  give(large);
  EXPECT_EQ(usage().allocated, 0u);
  EXPECT_EQ(counter("calls"), 4u);
}

TEST(OneLock, ExaminesItself) {
  char *one = get(100), *two = get(100);
  give(one);
  give(two);
  EXPECT_TRUE(is_valid());
  void* link = *reinterpret_cast<void**>(two);
  memset(two, 0, 8);
  EXPECT_FALSE(is_valid()) << "the list is cut, and a block is lost";
  memcpy(two, &link, 8);
  EXPECT_TRUE(is_valid());
  give(one);  // twice, but not in a row: free does not see it
  EXPECT_FALSE(is_valid());
}

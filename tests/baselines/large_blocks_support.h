// What the tests of LargeBlocks share.
#pragma once
#include <gtest/gtest.h>

#include <cstring>

#include "base/os_pages.h"
#include "baselines/common/large_blocks.h"

namespace hm::test {

inline constinit LargeBlocks large;
inline constinit LargeBlocks keeping(true);

inline ChunkKind kind_of(const void* block) { return AddressMap::kind(address_of(block)); }
inline char* get(size_t size, size_t alignment = kGranule, LargeBlocks& from = large) {
  auto* block = static_cast<char*>(from.allocate(size, alignment));
  EXPECT_NE(block, nullptr);
  return block;
}
inline void mark_ends(char* block, size_t size) {
  block[0] = 'a';
  block[size - 1] = 'z';
}
inline bool is_zero(const char* block, size_t size) { return block[0] == 0 && memcmp(block, block + 1, size - 1) == 0; }
inline size_t usable(const void* block) { return large.usable_size(block, "test"); }

}  // namespace hm::test

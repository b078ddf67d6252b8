#include "base/address_map.h"

#include <sys/mman.h>

#include "support.h"

using namespace hm;

namespace {

int a_global;
constexpr uintptr_t kEnd = uintptr_t{1} << kAddressBits;

}  // namespace

TEST(AddressMap, WhatTheSystemGivesIsCoveredAndForeignAtFirst) {
  int on_stack = 0;
  void* mapped = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (uintptr_t address : {address_of(&on_stack), address_of(&a_global), address_of(mapped), uintptr_t{0}}) {
    EXPECT_TRUE(AddressMap::covers(address, 4));
    EXPECT_EQ(AddressMap::kind(address), ChunkKind::kForeign);
  }
#if defined(__x86_64__)
  EXPECT_EQ(kAddressBits, 47);
#elif defined(__aarch64__)
  EXPECT_EQ(kAddressBits, 48);
#endif
}

TEST(AddressMap, CoversNothingBeyondItsBits) {
  EXPECT_TRUE(AddressMap::covers(kEnd - kChunk, kChunk));
  EXPECT_TRUE(AddressMap::covers(0, kEnd));
  EXPECT_FALSE(AddressMap::covers(kEnd - kChunk, kChunk + 1));
  EXPECT_FALSE(AddressMap::covers(kEnd, 0));
  EXPECT_FALSE(AddressMap::covers(kChunk, ~size_t{0})) << "the sum wraps around";
  EXPECT_FALSE(AddressMap::covers(~uintptr_t{0}, 1));
}

TEST(AddressMap, AddressesBeyondItsBitsAreForeign) {
  std::vector<uintptr_t> beyond{~uintptr_t{0}, uintptr_t{0xdeadbeefdeadbeef}};
  for (int bit = kAddressBits; bit < 64; ++bit)
    for (uintptr_t address : {uintptr_t{1} << bit, (uintptr_t{1} << bit) + kChunk, ~uintptr_t{0} << bit})
      beyond.push_back(address);
  for (uintptr_t address : beyond) EXPECT_EQ(AddressMap::kind(address), ChunkKind::kForeign) << address;
}

TEST(AddressMap, SetsExactlyOneUnit) {
  for (uintptr_t unit : {uintptr_t{12345} * kChunk, kEnd - kChunk}) {
    AddressMap::set(reinterpret_cast<void*>(unit), ChunkKind::kHuge);
    EXPECT_EQ(AddressMap::kind(unit - 1), ChunkKind::kForeign);
    EXPECT_EQ(AddressMap::kind(unit), ChunkKind::kHuge);
    EXPECT_EQ(AddressMap::kind(unit + kChunk - 1), ChunkKind::kHuge);
    EXPECT_EQ(AddressMap::kind(unit + kChunk), ChunkKind::kForeign);
    AddressMap::set(reinterpret_cast<void*>(unit), ChunkKind::kForeign);
    EXPECT_EQ(AddressMap::kind(unit), ChunkKind::kForeign);
  }
}

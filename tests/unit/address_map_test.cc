#include "base/address_map.h"

#include <sys/mman.h>

#include "support.h"

using namespace hm;

namespace {
int a_global;
}

TEST(AddressMap, KnowsNothingAtFirst) {
  int on_stack = 0;
  EXPECT_EQ(AddressMap::kind(0), ChunkKind::kForeign);
  EXPECT_EQ(AddressMap::kind(address_of(&on_stack)), ChunkKind::kForeign);
  EXPECT_EQ(AddressMap::kind(address_of(&a_global)), ChunkKind::kForeign);
}

TEST(AddressMap, CoversWhatTheSystemGives) {
#if defined(__x86_64__)
  EXPECT_EQ(kAddressBits, 47);
#elif defined(__aarch64__)
  EXPECT_EQ(kAddressBits, 48);
#endif
  int on_stack = 0;
  void* mapped = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_TRUE(AddressMap::covers(address_of(&on_stack), 1));
  EXPECT_TRUE(AddressMap::covers(address_of(mapped), 4096));
}

TEST(AddressMap, CoversNothingBeyondItsBits) {
  constexpr uintptr_t kEnd = uintptr_t{1} << kAddressBits;
  EXPECT_TRUE(AddressMap::covers(kEnd - kChunk, kChunk));
  EXPECT_TRUE(AddressMap::covers(0, kEnd));
  EXPECT_FALSE(AddressMap::covers(kEnd - kChunk, kChunk + 1));
  EXPECT_FALSE(AddressMap::covers(kEnd, 0));
  EXPECT_FALSE(AddressMap::covers(kChunk, ~size_t{0})) << "the sum wraps around";
  EXPECT_FALSE(AddressMap::covers(~uintptr_t{0}, 1));
}

TEST(AddressMap, AddressesBeyondItsBitsAreForeign) {
  for (int bit = kAddressBits; bit < 64; ++bit)
    for (uintptr_t address : {uintptr_t{1} << bit, (uintptr_t{1} << bit) + kChunk, ~uintptr_t{0} << bit})
      EXPECT_EQ(AddressMap::kind(address), ChunkKind::kForeign) << address;
  for (uintptr_t address : {~uintptr_t{0}, uintptr_t{0xdeadbeefdeadbeef}})
    EXPECT_EQ(AddressMap::kind(address), ChunkKind::kForeign) << address;
}

TEST(AddressMap, SetsExactlyOneUnit) {
  uintptr_t unit = uintptr_t{12345} * kChunk;
  AddressMap::set(reinterpret_cast<void*>(unit), ChunkKind::kLocal);
  EXPECT_EQ(AddressMap::kind(unit - 1), ChunkKind::kForeign);
  EXPECT_EQ(AddressMap::kind(unit), ChunkKind::kLocal);
  EXPECT_EQ(AddressMap::kind(unit + kChunk - 1), ChunkKind::kLocal);
  EXPECT_EQ(AddressMap::kind(unit + kChunk), ChunkKind::kForeign);
  AddressMap::set(reinterpret_cast<void*>(unit), ChunkKind::kForeign);
  EXPECT_EQ(AddressMap::kind(unit), ChunkKind::kForeign);
}

TEST(AddressMap, CoversTheLastUnit) {
  uintptr_t last = (uintptr_t{1} << kAddressBits) - kChunk;
  AddressMap::set(reinterpret_cast<void*>(last), ChunkKind::kHuge);
  EXPECT_EQ(AddressMap::kind(last + kChunk - 1), ChunkKind::kHuge);
  AddressMap::set(reinterpret_cast<void*>(last), ChunkKind::kForeign);
}

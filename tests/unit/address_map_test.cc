#include "base/address_map.h"

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

TEST(AddressMap, AddressesOutsideThe47BitsAreForeign) {
  for (uintptr_t address : {uintptr_t{1} << 47, (uintptr_t{1} << 47) + kChunk, ~uintptr_t{0}, uintptr_t{1} << 63,
                            uintptr_t{0xdeadbeefdeadbeef}})
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
  uintptr_t last = (uintptr_t{1} << 47) - kChunk;
  AddressMap::set(reinterpret_cast<void*>(last), ChunkKind::kHuge);
  EXPECT_EQ(AddressMap::kind(last + kChunk - 1), ChunkKind::kHuge);
  AddressMap::set(reinterpret_cast<void*>(last), ChunkKind::kForeign);
}

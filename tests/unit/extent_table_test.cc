#include "large/extent_table.h"

#include <algorithm>
#include <memory>

#include "large/huge.h"
#include "support.h"

using namespace hm;

namespace {

// A table of its own, and addresses that nobody has: it writes to the address map only.
struct ExtentTables : testing::Test {
  std::unique_ptr<ExtentTable> table = std::make_unique<ExtentTable>();
  static char* chunk(size_t n) { return reinterpret_cast<char*>((size_t{1} << 40) + n * kChunk); }
  Extent* create(size_t n) {
    Extent* extent = table->create(chunk(n));
    extent->set_bytes(kChunk);
    table->enter(*extent);
    return extent;
  }
  void drop(Extent& extent) {
    table->leave(extent);
    table->release(extent);
  }
};

}  // namespace

TEST_F(ExtentTables, FindsEachByTheChunkItStartsIn) {
  std::vector<Extent*> extents;
  for (size_t n = 0; n < 2000; n += 2) extents.push_back(create(n));
  EXPECT_EQ(std::set<Extent*>(extents.begin(), extents.end()).size(), 1000u);
  for (size_t i = 0; i < extents.size(); ++i) {
    EXPECT_EQ(table->find(address_of(chunk(2 * i)) + 4711), extents[i]);
    EXPECT_EQ(table->find(address_of(chunk(2 * i + 1))), nullptr);
    EXPECT_EQ(extents[i]->start(), chunk(2 * i));
    EXPECT_EQ(extents[i]->state(), ExtentState::kHeld);
    drop(*extents[i]);
    EXPECT_EQ(table->find(address_of(chunk(2 * i))), nullptr);
    EXPECT_EQ(test::kind_of(chunk(2 * i)), ChunkKind::kGone);
  }
}

TEST_F(ExtentTables, AnyPointerMayBeAskedAbout) {
  for (uintptr_t address : {uintptr_t{0}, uintptr_t{16}, ~uintptr_t{0}, uintptr_t{1} << 47, uintptr_t{1} << 63})
    EXPECT_EQ(table->find(address), nullptr);
}

TEST_F(ExtentTables, DescriptorsServeAgain) {
  for (size_t n = 0; n < 100; ++n) create(n);
  size_t bytes = table->bytes();
  for (int round = 0; round < 10; ++round) {
    table->for_each([&](Extent& extent) { drop(extent); });
    for (size_t n = 0; n < 100; ++n) {
      Extent* extent = create(n);
      EXPECT_EQ(extent->dirty + extent->slack + extent->size, 0u);
    }
  }
  EXPECT_EQ(table->bytes(), bytes);
}

TEST_F(ExtentTables, RepairFindsFreeDescriptorsOnly) {
  for (size_t n = 0; n < 40; ++n) create(n);
  for (size_t n = 0; n < 20; ++n) drop(*table->find(address_of(chunk(n))));
  Extent* held = table->create(chunk(50));  // owns nothing yet, and is not free
  size_t bytes = table->bytes();
  table->repair();
  std::set<Extent*> used{held};
  table->for_each([&](Extent& extent) { used.insert(&extent); });
  EXPECT_EQ(used.size(), 21u);
  for (size_t n = 0; table->bytes() == bytes && n < 1000; ++n) EXPECT_TRUE(used.insert(create(n)).second) << "each once";
  EXPECT_LT(used.size(), 100u);
}

TEST_F(ExtentTables, DescriptorsLieBetweenGuards) {
  uintptr_t extent = address_of(huge_extent(hm_malloc(2 * kMiB))), arena = 64 * kKiB, page = os::page_size();
  auto near = test::accessible_bytes(extent - arena - page, extent + arena + page);
  auto mine =
      std::find_if(near.begin(), near.end(), [=](auto& part) { return part.first <= extent && extent < part.second; });
  ASSERT_NE(mine, near.end());
  EXPECT_EQ(mine->second - mine->first, arena);
}

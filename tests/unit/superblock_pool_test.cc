#include "core/superblock_pool.h"

#include <sys/resource.h>

#include "pages/footprint.h"
#include "support.h"

using namespace hm;
using test::drop;

namespace {

const ClassIndex kClass = class_of(512);
const size_t kAll = blocks_of(kClass);

// A superblock of which `free` blocks are FREE.
Superblock& with_free(size_t free, const Shelf* owner = nullptr) {
  Superblock& sb = test::fresh_superblock(kClass);
  for (size_t i = free; i < sb.blocks; ++i) sb.states[i].mark_taken();
  if (owner != nullptr) sb.set_owner(const_cast<Shelf*>(owner));
  return sb;
}
Superblock& pushed(Superblock& sb) {
  superblock_pool.push(sb);
  return sb;
}
const Shelf* shelf_of_shard(uint32_t shard) {
  Shelf* shelf = &ThreadHeap::create()->shelf;
  shelf->shard = shard;
  return shelf;
}
Superblock* acquire(const Shelf* mine = nullptr) { return superblock_pool.acquire(kClass, mine); }
Superblock* acquire_near(const Shelf* mine) {
  return superblock_pool.acquire_near(kClass, mine, SuperblockPool::kMaxProbes, min_free_blocks(kClass));
}
// Nine chunks of superblocks in the pool: the last half free, which the pool has not been told, and all others full.
Superblock& roomy_behind_full() {
  std::vector<Superblock*> full;
  while (slice_pool.chunks() < 9) full.push_back(&with_free(0));
  for (Superblock* sb : full) superblock_pool.push(*sb);
  for (size_t i = 0; i < kAll / 2; ++i) full.back()->states[i].give_back();
  return *full.back();
}
size_t count(uint32_t shard = 0) { return superblock_pool.queue(shard, kClass).count(); }

}  // namespace

TEST(SuperblockPool, ClaimsTheFirstThatIsWorthIt) {
  pushed(with_free(0));
  pushed(with_free(1));
  Superblock& half = pushed(with_free(kAll / 2));
  EXPECT_EQ(acquire(), &half);
  EXPECT_EQ(acquire(), nullptr);
  EXPECT_EQ(count(), 2u) << "the others stay, for when they have room";
}

TEST(SuperblockPool, AClaimPrefersItsOwn) {
  const Shelf* mine = shelf_of_shard(0);
  Superblock &other = pushed(with_free(kAll)), &own = pushed(with_free(kAll, mine));
  EXPECT_EQ(acquire(mine), &own);
  EXPECT_EQ(acquire(mine), &other) << "better another's than none";
}

TEST(SuperblockPool, AClaimLooksIntoItsOwnShardFirst) {
  Superblock &far = pushed(with_free(kAll, shelf_of_shard(4))), &near = pushed(with_free(kAll, shelf_of_shard(3)));
  EXPECT_EQ(count(3), 1u);
  const Shelf* mine = shelf_of_shard(3);
  EXPECT_EQ(acquire(mine), &near);
  EXPECT_EQ(acquire(mine), &far) << "all shards";
}

TEST(SuperblockPool, AClaimNearByLeavesOthersAloneWhileFreeSlicesAreResident) {
  slice_pool.purge(SlicePool::Purge::kAll);
  Superblock& far = pushed(with_free(kAll, shelf_of_shard(4)));
  const Shelf* mine = shelf_of_shard(3);
  Superblock* freed[3];  // with a whole page among them, where one is two slices
  for (Superblock*& sb : freed) sb = &with_free(kAll);
  for (Superblock* sb : freed) drop(*sb);
  EXPECT_EQ(acquire_near(mine), nullptr);
  slice_pool.purge(SlicePool::Purge::kAll);
  EXPECT_EQ(acquire_near(mine), &far);
}

TEST(SuperblockPool, OtherShardsHaveTheirTurn) {
  const Shelf* mine = shelf_of_shard(2);
  for (uint32_t shard = 0; shard < SuperblockPool::kShards; ++shard) {
    Superblock& sb = pushed(with_free(kAll, shelf_of_shard(shard)));
    size_t claims = 1;
    while (superblock_pool.acquire(kClass, mine, 1, min_free_blocks(kClass)) != &sb && claims < 20) ++claims;
    EXPECT_LE(claims, SuperblockPool::kShards - 1) << shard;
  }
}

TEST(SuperblockPool, AClaimLooksAtAFewOnly) {
  for (int i = 0; i < 20; ++i) pushed(with_free(0));
  pushed(with_free(kAll));
  EXPECT_EQ(acquire(), nullptr);
  Superblock* found = nullptr;
  for (int i = 0; i < 20 && found == nullptr; ++i) found = acquire();
  EXPECT_NE(found, nullptr) << "each claim goes on where the last one stopped";
}

TEST(SuperblockPool, WhollyFreeOnesServeOtherClasses) {
  Superblock& sb = pushed(with_free(kAll));
  pushed(with_free(kAll - 1));
  EXPECT_EQ(superblock_pool.release_free(SIZE_MAX), 1u);
  EXPECT_EQ(count(), 1u);
  EXPECT_EQ(sb.kind(), SliceKind::kUnused);
  Superblock& other = test::fresh_superblock(class_of(16));
  EXPECT_EQ(&other, &sb) << "the warm slice is taken first";
  EXPECT_TRUE(other.is_valid());
}

// They serve a large run too, when the system has no more.
TEST(SuperblockPool, WhollyFreeOnesServeWhenNothingCanBeMapped) {
  HM_NEEDS(kLimitsAddresses);
  Superblock& sb = with_free(kAll);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &none), 0);
  while (superblock_pool.fresh_run(1).first != nullptr) continue;
  superblock_pool.push(sb);
  Slice *found = superblock_pool.fresh_run(1).first, *none_left = superblock_pool.fresh_run(1).first;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(found, &sb);
  EXPECT_EQ(none_left, nullptr);
}

TEST(SuperblockPool, LooksAreBounded) {
  for (int i = 0; i < 10; ++i) pushed(with_free(kAll));
  EXPECT_EQ(superblock_pool.release_free(3), 3u);
  EXPECT_EQ(count(), 7u);
  EXPECT_EQ(superblock_pool.release_free(SIZE_MAX), 7u);
}

// The footprint grows by no more than an eighth before the whole pool has been searched: then a superblock with room is
// found however far back it lies.
TEST(SuperblockPool, SearchesBeforeItGrows) {
  Superblock& roomy = roomy_behind_full();
  size_t before = slice_pool.chunks();
  footprint.count_cross_thread_frees(kAll / 2, kAll / 2 * roomy.block_size);
  while (&with_free(0) != &roomy) ASSERT_LE(slice_pool.chunks(), before + before / 8 + 1);
}

// What one class looked through in vain another still has to look through: a search serves one class.
TEST(SuperblockPool, SearchesForEachClass) {
  Superblock& roomy = roomy_behind_full();
  footprint.count_cross_thread_frees(kAll / 2, kAll / 2 * roomy.block_size);
  while (slice_pool.chunks() < 12) test::fresh_superblock(class_of(1024));
  while (slice_pool.chunks() < 14) superblock_pool.fresh_run(8);
  size_t before = slice_pool.chunks();
  while (&with_free(0) != &roomy) ASSERT_LE(slice_pool.chunks(), before + before / 8 + 1);
}

// While nothing becomes FREE there is nothing to be found: what only builds up has no superblock looked at.
struct SuperblockPoolSearch : testing::TestWithParam<size_t> {};

// Those that it has moved to the front are not found there again.
TEST_P(SuperblockPoolSearch, LooksAtAllOnce) {
  std::vector<Superblock*> all;
  while (slice_pool.chunks() < 9) all.push_back(&with_free(all.size() < GetParam() ? kAll / 2 : 0));
  for (size_t i = all.size() - 50; i < all.size(); ++i)
    for (size_t block = 0; block < kAll; ++block) all[i]->states[block].give_back();
  for (Superblock* sb : all) superblock_pool.push(*sb);
  footprint.count_cross_thread_frees(50 * kAll, 50 * kAll * all[0]->block_size);
  while (slice_pool.allocate(1, false).first != nullptr) {}
  size_t before = slice_pool.used();
  EXPECT_NE(superblock_pool.fresh(kClass, nullptr), nullptr);
  EXPECT_GE(before + 1 - slice_pool.used(), 50u);
}
INSTANTIATE_TEST_SUITE_P(Usable, SuperblockPoolSearch, testing::Values(0, 1, 3, 4, 40));

TEST(SuperblockPool, DoesNotSearchWhatNobodyFreed) {
  Superblock& roomy = roomy_behind_full();
  while (slice_pool.chunks() < 34) ASSERT_NE(&with_free(0), &roomy);
  footprint.count_cross_thread_frees(kAll, 2 * kSlice);  // enough for so many chunks
  size_t before = slice_pool.chunks();
  while (&with_free(0) != &roomy) ASSERT_LE(slice_pool.chunks(), before + 1) << "the search was only put off";
}

#include "core/superblock_pool.h"

#include <sys/resource.h>

#include "support.h"
#include "threads/thread_heap.h"

using namespace hm;

namespace {

const ClassIndex kClass = class_of(512);

// A superblock of which `free` blocks are FREE.
Superblock& with_free(size_t free) {
  Superblock& sb = test::fresh_superblock(kClass);
  for (size_t i = free; i < sb.blocks; ++i) sb.states[i].mark_taken();
  return sb;
}
Superblock& owned_by(const Shelf* shelf) {
  Superblock& sb = with_free(blocks_of(kClass));
  sb.set_owner(const_cast<Shelf*>(shelf));
  return sb;
}
const Shelf* shelf_of_shard(uint32_t shard) {
  Shelf* shelf = &ThreadHeap::create()->shelf;
  shelf->shard = shard;
  return shelf;
}
void drop(Superblock& sb) {
  for (size_t i = 0; i < sb.blocks; ++i) sb.states[i].give_back();
  release(sb);
}

}  // namespace

TEST(SuperblockPool, ClaimsTheFirstThatIsWorthIt) {
  Superblock &rest = with_free(0), &nearly = with_free(1), &half = with_free(blocks_of(kClass) / 2);
  for (Superblock* sb : {&rest, &nearly, &half}) superblock_pool.push(*sb);
  EXPECT_EQ(superblock_pool.acquire(kClass, nullptr), &half);
  EXPECT_EQ(superblock_pool.acquire(kClass, nullptr), nullptr);
  EXPECT_EQ(superblock_pool.queue(0, kClass).count(), 2u) << "the others stay, for when they have room";
  while (Superblock* sb = superblock_pool.queue(0, kClass).pop()) drop(*sb);
  drop(half);
}

TEST(SuperblockPool, AClaimPrefersItsOwn) {
  const Shelf* mine = shelf_of_shard(0);
  Superblock &other = with_free(blocks_of(kClass)), &own = owned_by(mine);
  for (Superblock* sb : {&other, &own}) superblock_pool.push(*sb);
  EXPECT_EQ(superblock_pool.acquire(kClass, mine), &own);
  EXPECT_EQ(superblock_pool.acquire(kClass, mine), &other) << "better another's than none";
  drop(own);
  drop(other);
}

TEST(SuperblockPool, AClaimLooksIntoItsOwnShardFirst) {
  const Shelf *mine = shelf_of_shard(3), *neighbour = shelf_of_shard(3), *stranger = shelf_of_shard(4);
  Superblock &far = owned_by(stranger), &near = owned_by(neighbour);
  for (Superblock* sb : {&far, &near}) superblock_pool.push(*sb);
  EXPECT_EQ(superblock_pool.queue(3, kClass).count(), 1u);
  EXPECT_EQ(superblock_pool.acquire(kClass, mine), &near);
  EXPECT_EQ(superblock_pool.acquire(kClass, mine), &far) << "all shards";
  drop(near);
  drop(far);
}

TEST(SuperblockPool, AClaimNearByLeavesOthersAloneWhileFreeSlicesAreResident) {
  slice_pool.purge(SlicePool::Purge::kAll);
  Superblock& far = owned_by(shelf_of_shard(4));
  const Shelf* mine = shelf_of_shard(3);
  superblock_pool.push(far);
  Superblock* freed[3];  // with a whole page among them, where one is two slices
  for (Superblock*& sb : freed) sb = &with_free(blocks_of(kClass));
  for (Superblock* sb : freed) drop(*sb);
  EXPECT_EQ(superblock_pool.acquire_near(kClass, mine, SuperblockPool::kMaxProbes, min_free_blocks(kClass)), nullptr);
  slice_pool.purge(SlicePool::Purge::kAll);
  EXPECT_EQ(superblock_pool.acquire_near(kClass, mine, SuperblockPool::kMaxProbes, min_free_blocks(kClass)), &far);
  drop(far);
}

TEST(SuperblockPool, OtherShardsHaveTheirTurn) {
  const Shelf* mine = shelf_of_shard(2);
  for (uint32_t shard = 0; shard < SuperblockPool::kShards; ++shard) {
    Superblock& sb = owned_by(shelf_of_shard(shard));
    superblock_pool.push(sb);
    size_t claims = 1;
    while (superblock_pool.acquire(kClass, mine, 1, min_free_blocks(kClass)) != &sb && claims < 20) ++claims;
    EXPECT_LE(claims, SuperblockPool::kShards - 1) << shard;
    drop(sb);
  }
}

TEST(SuperblockPool, AClaimLooksAtAFewOnly) {
  std::vector<Superblock*> rest;
  for (int i = 0; i < 20; ++i) superblock_pool.push(with_free(0));
  superblock_pool.push(with_free(blocks_of(kClass)));
  EXPECT_EQ(superblock_pool.acquire(kClass, nullptr), nullptr);
  Superblock* found = nullptr;
  for (int i = 0; i < 20 && found == nullptr; ++i) found = superblock_pool.acquire(kClass, nullptr);
  ASSERT_NE(found, nullptr) << "each claim goes on where the last one stopped";
  drop(*found);
  while (Superblock* sb = superblock_pool.queue(0, kClass).pop()) drop(*sb);
}

TEST(SuperblockPool, WhollyFreeOnesServeOtherClasses) {
  Superblock& sb = with_free(blocks_of(kClass));
  Superblock& busy = with_free(blocks_of(kClass) - 1);
  superblock_pool.push(sb);
  superblock_pool.push(busy);
  EXPECT_EQ(superblock_pool.release_free(SIZE_MAX), 1u);
  EXPECT_EQ(superblock_pool.queue(0, kClass).count(), 1u);
  EXPECT_EQ(sb.kind(), SliceKind::kUnused);
  Superblock& other = test::fresh_superblock(class_of(16));
  EXPECT_EQ(&other, &sb) << "the warm slice is taken first";
  EXPECT_TRUE(other.is_valid());
  release(other);
  drop(*superblock_pool.queue(0, kClass).pop());
}

// They serve a large run too, when the system has no more.
TEST(SuperblockPool, WhollyFreeOnesServeWhenNothingCanBeMapped) {
  Superblock& sb = with_free(blocks_of(kClass));
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
  for (int i = 0; i < 10; ++i) superblock_pool.push(with_free(blocks_of(kClass)));
  EXPECT_EQ(superblock_pool.release_free(3), 3u);
  EXPECT_EQ(superblock_pool.queue(0, kClass).count(), 7u);
  EXPECT_EQ(superblock_pool.release_free(SIZE_MAX), 7u);
}

// The footprint grows by no more than an eighth before the whole pool has been searched: then a superblock with room is
// found however far back it lies.
TEST(SuperblockPool, SearchesBeforeItGrows) {
  std::vector<Superblock*> held;
  while (slice_pool.chunks() < 9) held.push_back(&with_free(0));
  size_t before = slice_pool.chunks();
  for (Superblock* sb : held) superblock_pool.push(*sb);
  Superblock& roomy = *held.back();
  for (size_t i = 0; i < blocks_of(kClass) / 2; ++i) roomy.states[i].give_back();
  held.clear();
  for (;;) {
    Superblock& next = with_free(0);
    held.push_back(&next);
    if (&next == &roomy) break;
    ASSERT_LE(slice_pool.chunks(), before + before / 8 + 1);
  }
  for (Superblock* sb : held) drop(*sb);
  while (Superblock* sb = superblock_pool.queue(0, kClass).pop()) drop(*sb);
  slice_pool.purge(SlicePool::Purge::kAll);
}

#include "local/local_heap.h"

#include "local.h"

using namespace hm;
using namespace hm::test;

namespace {

using LocalHeaps = NothingIsLost;
constexpr size_t kPerUnit = kUnit / 1024;  // blocks of 1024 bytes

}  // namespace

TEST_F(LocalHeaps, BumpsThroughAUnit) {
  auto* first = static_cast<char*>(hm_local_alloc(40));
  auto* second = static_cast<char*>(hm_local_alloc(1));
  EXPECT_EQ(second, first + 48);
  EXPECT_EQ(hm_local_alloc(16), second + 16);
  EXPECT_EQ(address_of(first) % kUnit, 0u);
  EXPECT_EQ(counts_of(first).allocated, 3u);
  free_local({first, second, second + 16});
}

TEST_F(LocalHeaps, TheFrontOfAChunkLiesBetweenGuards) {
  void* block = hm_local_alloc(40);
  uintptr_t chunk = address_of(&chunk_of(block)), counts = chunk + HM_LOCAL_COUNTS_, units = chunk + kFirstUnit * kUnit;
  EXPECT_EQ(accessible_bytes(chunk, chunk + kChunk),
            (std::vector<AddressRange>{{counts, units - kGuard}, {units, chunk + kChunk}}));
  for (uintptr_t at : {counts, units}) EXPECT_EQ(at % (64 * kKiB), 0u);
  hm_local_free(block);
}

TEST_F(LocalHeaps, EverySizeIsAlignedKnownAndDistinct) {
  std::vector<void*> blocks;
  for (size_t size = 0; size <= HM_LOCAL_MAX; size += 7) {
    void* block = hm_local_alloc(size);
    EXPECT_EQ(address_of(block) % 16, 0u);
    EXPECT_EQ(kind_of(block), ChunkKind::kLocal);
    EXPECT_EQ(hm_local_usable_size(block), hm_local_granules_(size) * kGranule);
    fill(block, size, static_cast<unsigned>(size));
    blocks.push_back(block);
  }
  for (size_t i = 0; i < blocks.size(); ++i) EXPECT_TRUE(matches(blocks[i], 7 * i, static_cast<unsigned>(7 * i)));
  EXPECT_TRUE(everything_is_valid());
  free_local(blocks);
}

TEST_F(LocalHeaps, LargerRequestsAreGeneralBlocks) {
  void* block = hm_local_alloc(HM_LOCAL_MAX + 1);
  EXPECT_EQ(kind_of(block), ChunkKind::kSlices);
  hm_local_free(block);
  EXPECT_EQ(hm_local_alloc(SIZE_MAX), nullptr);
  EXPECT_EQ(hm_local_alloc(SIZE_MAX - 14), nullptr);
}

TEST_F(LocalHeaps, AUnitWithoutBlocksIsOnePieceAgain) {
  auto blocks = allocate_local(10, 100);
  free_local(blocks);
  EXPECT_EQ(hm_local_alloc(100), blocks[0]) << "coalescence free of the current unit";
  hm_local_free(blocks[0]);
  EXPECT_EQ(counts_of(blocks[0]).allocated, 0u);
}

TEST_F(LocalHeaps, FullUnitsComeBackWhenEmpty) {
  auto unit = allocate_local(kPerUnit, 1024), others = allocate_local(2 * kPerUnit, 1024);
  auto is_empty = [&] { return (chunk_of(unit[0]).empty >> unit_of(unit[0]) & 1) != 0; };
  EXPECT_FALSE(is_empty());
  free_local(unit);
  EXPECT_TRUE(is_empty());
  EXPECT_EQ(allocate_local(kPerUnit, 1024)[0], unit[0]);
  EXPECT_TRUE(everything_is_valid());
  free_local(unit);
  free_local(others);
  EXPECT_EQ(local_chunks(), 1u);
}

TEST_F(LocalHeaps, HolesBetweenLongLivedBlocksAreUsed) {
  std::vector<void*> kept;
  for (size_t i = 0; i < 58 * 4; ++i) {  // of each 16 KB one block of 16 bytes stays
    auto blocks = allocate_local(16, 1008);
    kept.push_back(hm_local_alloc(16));
    free_local(blocks);
  }
  EXPECT_LE(local_chunks(), 8 * kMiB / kChunk);
  for (int round = 0; round < 30; ++round) free_local(allocate_local(400, 2000));
  EXPECT_LE(local_chunks(), 8 * kMiB / kChunk) << "the memory between the kept blocks serves";
  EXPECT_TRUE(everything_is_valid());
  free_local(kept);
}

// What one live block can pin is bounded: random lifetimes over a fixed population do not grow without end.
TEST_F(LocalHeaps, PinnedMemoryIsBounded) {
  std::mt19937 random(kSeed);
  std::vector<void*> live(2000, nullptr);
  size_t after_warm_up = 0;
  for (int i = 0; i < 400000; ++i) {
    void*& slot = live[random() % live.size()];
    if (slot != nullptr) hm_local_free(slot);
    slot = hm_local_alloc(random() % 500);
    if (i == 200000) after_warm_up = local_chunks();
  }
  EXPECT_LE(local_chunks(), after_warm_up + 1);
  EXPECT_LE(local_chunks() * kChunk, 48 * kMiB) << "half a megabyte live";
  EXPECT_TRUE(everything_is_valid());
  for (void* block : live) hm_local_free(block);
}

TEST_F(LocalHeaps, BlocksInRandomUseKeepTheirContents) {
  RandomUse use{.allocate = hm_local_alloc,
                .reallocate = hm_local_realloc,
                .release = hm_local_free,
                .size = [](uint32_t random) -> size_t { return random % 3 == 0 ? random / 3 % 5000 : random % 200 + 1; }};
  use_at_random(use, 300, 60000);
}

TEST_F(LocalHeaps, ReallocKeepsOrMoves) {
  void* block = hm_local_alloc(100);
  fill(block, 100, 3);
  EXPECT_EQ(hm_local_realloc(block, 112), block);
  for (size_t size : {3000, 100000, 100}) {  // to another place, to a general block, and back
    EXPECT_NE(block, std::exchange(block, hm_local_realloc(block, size))) << size;
    EXPECT_TRUE(matches(block, 100, 3)) << size;
  }
  EXPECT_EQ(hm_local_realloc(block, 0), nullptr);
  block = hm_local_realloc(nullptr, 10);
  EXPECT_NE(block, nullptr);
  hm_free(block);  // any entry point takes it
}

TEST_F(LocalHeaps, CollectKeepsWhatIsLive) {
  auto blocks = allocate_local(500, 1000);
  for (size_t i = 0; i < blocks.size(); ++i) fill(blocks[i], 1000, static_cast<unsigned>(i));
  free_local(allocate_local(1000, 1000));
  hm_collect();
  EXPECT_TRUE(everything_is_valid());
  for (size_t i = 0; i < blocks.size(); ++i) EXPECT_TRUE(matches(blocks[i], 1000, static_cast<unsigned>(i)));
  free_local(blocks);
}

TEST_F(LocalHeaps, IsValidSeesDamage) {
  void* block = hm_local_alloc(64);
  EXPECT_TRUE(my_local_heap().is_valid());
  ++counts_of(block).allocated;
  EXPECT_FALSE(my_local_heap().is_valid());
  --counts_of(block).allocated;
  hm_local_free(block);
}

#include "local/local_heap.h"

#include "support.h"
#include "threads/registry.h"

using namespace hm;
using test::on_thread;

namespace {

LocalChunk& chunk_of(void* block) { return LocalChunk::of(address_of(block)); }
constexpr size_t kPerUnit = kUnit / 1024;  // blocks of 1024 bytes

size_t unit_of(void* block) { return address_of(block) % kChunk / kUnit; }
hm_local_unit_& counts_of(void* block) { return chunk_of(block).units[unit_of(block)]; }
bool valid() { return my_thread_heap().local.is_valid(); }
size_t chunks() {
  size_t n = 0;
  for (LocalChunk* chunk = my_thread_heap().local.chunks(); chunk != nullptr; chunk = chunk->next) ++n;
  return n;
}
std::vector<void*> allocate_many(size_t n, size_t size) {
  std::vector<void*> blocks;
  for (size_t i = 0; i < n; ++i) blocks.push_back(hm_local_alloc(size));
  return blocks;
}
void free_all(const std::vector<void*>& blocks) {
  for (void* block : blocks) hm_local_free(block);
}

}  // namespace

TEST(LocalHeap, BumpsThroughAUnit) {
  on_thread([] {
    auto* first = static_cast<char*>(hm_local_alloc(40));
    auto* second = static_cast<char*>(hm_local_alloc(1));
    EXPECT_EQ(second, first + 48);
    EXPECT_EQ(hm_local_alloc(16), second + 16);
    EXPECT_EQ(address_of(first) % kUnit, 0u);
    EXPECT_EQ(counts_of(first).allocated, 3u);
    EXPECT_TRUE(valid());
  });
}

TEST(LocalHeap, TheFrontOfAChunkLiesBetweenGuards) {
  on_thread([] {
    uintptr_t chunk = address_of(&chunk_of(hm_local_alloc(40)));
    auto accessible = test::accessible_bytes(chunk, chunk + kChunk);
    ASSERT_EQ(accessible.size(), 2u);
    EXPECT_EQ(accessible[0].first, chunk + HM_LOCAL_COUNTS_);
    EXPECT_EQ(accessible[0].second, chunk + kFirstUnit * kUnit - kGuard);
    EXPECT_EQ(accessible[1].first, chunk + kFirstUnit * kUnit);
    EXPECT_EQ(accessible[1].second, chunk + kChunk);
    for (size_t at : {size_t{HM_LOCAL_COUNTS_}, kFirstUnit * kUnit}) EXPECT_EQ(at % (64 * kKiB), 0u);
  });
}

TEST(LocalHeap, EverySizeIsAlignedKnownAndDistinct) {
  on_thread([] {
    std::vector<std::pair<void*, size_t>> blocks;
    for (size_t size = 0; size <= HM_LOCAL_MAX; size += 7) {
      void* block = hm_local_alloc(size);
      EXPECT_EQ(address_of(block) % 16, 0u);
      EXPECT_EQ(AddressMap::kind(address_of(block)), ChunkKind::kLocal);
      EXPECT_EQ(hm_local_usable_size(block), hm_local_granules_(size) * kGranule);
      test::fill(block, size, static_cast<unsigned>(size));
      blocks.emplace_back(block, size);
    }
    for (auto& [block, size] : blocks) EXPECT_TRUE(test::matches(block, size, static_cast<unsigned>(size)));
    EXPECT_TRUE(valid());
    for (auto& [block, size] : blocks) hm_local_free(block);
    EXPECT_TRUE(valid());
  });
}

TEST(LocalHeap, LargerRequestsAreGeneralBlocks) {
  void* block = hm_local_alloc(HM_LOCAL_MAX + 1);
  EXPECT_EQ(AddressMap::kind(address_of(block)), ChunkKind::kSlices);
  hm_local_free(block);
  EXPECT_EQ(hm_local_alloc(SIZE_MAX), nullptr);
  EXPECT_EQ(hm_local_alloc(SIZE_MAX - 14), nullptr);
}

TEST(LocalHeap, AUnitWithoutBlocksIsOnePieceAgain) {
  on_thread([] {
    auto blocks = allocate_many(10, 100);
    free_all(blocks);
    EXPECT_EQ(hm_local_alloc(100), blocks[0]) << "coalescence free of the current unit";
    hm_local_free(blocks[0]);
    EXPECT_EQ(counts_of(blocks[0]).allocated, 0u);
    EXPECT_TRUE(valid());
  });
}

TEST(LocalHeap, FullUnitsComeBackWhenEmpty) {
  on_thread([] {
    auto blocks = allocate_many(3 * kPerUnit, 1024);
    EXPECT_EQ(chunk_of(blocks[0]).empty >> unit_of(blocks[0]) & 1, 0u);
    for (size_t i = 0; i < kPerUnit; ++i) hm_local_free(blocks[i]);
    EXPECT_EQ(chunk_of(blocks[0]).empty >> unit_of(blocks[0]) & 1, 1u);
    auto more = allocate_many(kPerUnit, 1024);
    EXPECT_EQ(more[0], blocks[0]);
    EXPECT_TRUE(valid());
    blocks.erase(blocks.begin(), blocks.begin() + static_cast<long>(kPerUnit));
    free_all(more);
    free_all(blocks);
    EXPECT_TRUE(valid());
    EXPECT_EQ(chunks(), 1u);
  });
}

TEST(LocalHeap, HolesBetweenLongLivedBlocksAreUsed) {
  on_thread([] {
    std::vector<void*> kept;
    for (size_t i = 0; i < 58 * 4; ++i) {  // of each 16 KB one block of 16 bytes stays
      auto blocks = allocate_many(16, 1008);
      kept.push_back(hm_local_alloc(16));
      free_all(blocks);
    }
    EXPECT_LE(chunks(), 8 * kMiB / kChunk);
    for (int round = 0; round < 30; ++round) free_all(allocate_many(400, 2000));
    EXPECT_LE(chunks(), 8 * kMiB / kChunk) << "the memory between the kept blocks serves";
    EXPECT_TRUE(valid());
    free_all(kept);
    EXPECT_TRUE(valid());
  });
}

// What one live block can pin is bounded: random lifetimes over a fixed population do not grow without end.
TEST(LocalHeap, PinnedMemoryIsBounded) {
  on_thread([] {
    std::mt19937 random(test::kSeed);
    std::vector<void*> live(2000, nullptr);
    size_t after_warm_up = 0;
    for (int i = 0; i < 400000; ++i) {
      void*& slot = live[random() % live.size()];
      if (slot != nullptr) hm_local_free(slot);
      slot = hm_local_alloc(random() % 500);
      if (i == 200000) after_warm_up = chunks();
    }
    EXPECT_LE(chunks(), after_warm_up + 1);
    EXPECT_LE(chunks() * kChunk, 48 * kMiB) << "half a megabyte live";
    EXPECT_TRUE(valid());
    for (void* block : live) hm_local_free(block);
    EXPECT_TRUE(valid());
  });
}

TEST(LocalHeap, RandomOperationsKeepContents) {
  on_thread([] {
    std::mt19937 random(test::kSeed);
    struct Slot {
      void* block = nullptr;
      size_t size = 0;
      unsigned seed = 0;
    };
    std::vector<Slot> slots(300);
    for (int i = 0; i < 60000; ++i) {
      Slot& slot = slots[random() % slots.size()];
      if (slot.block != nullptr) { ASSERT_TRUE(test::matches(slot.block, slot.size, slot.seed)); }
      size_t size = random() % 3 == 0 ? random() % 5000 : random() % 200 + 1;
      if (slot.block != nullptr && random() % 4 == 0) {
        slot.block = hm_local_realloc(slot.block, size);
        ASSERT_TRUE(test::matches(slot.block, std::min(size, slot.size), slot.seed));
        if (size == 0) slot.block = nullptr;
      } else {
        if (slot.block != nullptr) hm_local_free(slot.block);
        slot.block = hm_local_alloc(size);
      }
      slot.size = slot.block == nullptr ? 0 : size;
      slot.seed = static_cast<unsigned>(i);
      if (slot.block != nullptr) test::fill(slot.block, slot.size, slot.seed);
      if (i % 10000 == 0) { ASSERT_TRUE(valid()); }
    }
    for (Slot& slot : slots) hm_local_free(slot.block);
    EXPECT_TRUE(valid());
  });
}

TEST(LocalHeap, ReallocKeepsOrMoves) {
  on_thread([] {
    void* block = hm_local_alloc(100);
    test::fill(block, 100, 3);
    EXPECT_EQ(hm_local_realloc(block, 112), block);
    void* grown = hm_local_realloc(block, 3000);
    EXPECT_NE(grown, block);
    EXPECT_TRUE(test::matches(grown, 100, 3));
    void* general = hm_local_realloc(grown, 100000);
    EXPECT_TRUE(test::matches(general, 100, 3));
    void* back = hm_local_realloc(general, 60);
    EXPECT_TRUE(test::matches(back, 60, 3));
    EXPECT_EQ(hm_local_realloc(back, 0), nullptr);
    void* first = hm_local_realloc(nullptr, 10);
    EXPECT_NE(first, nullptr);
    hm_free(first);  // any entry point takes it
    EXPECT_TRUE(valid());
  });
}

TEST(LocalHeap, CollectKeepsWhatIsLive) {
  on_thread([] {
    auto blocks = allocate_many(500, 1000);
    for (size_t i = 0; i < blocks.size(); ++i) test::fill(blocks[i], 1000, static_cast<unsigned>(i));
    auto more = allocate_many(1000, 1000);
    free_all(more);
    hm_collect();
    EXPECT_TRUE(valid());
    for (size_t i = 0; i < blocks.size(); ++i) EXPECT_TRUE(test::matches(blocks[i], 1000, static_cast<unsigned>(i)));
    free_all(blocks);
  });
}

TEST(LocalHeap, IsValidSeesDamage) {
  on_thread([] {
    void* block = hm_local_alloc(64);
    EXPECT_TRUE(valid());
    ++counts_of(block).allocated;
    EXPECT_FALSE(valid());
    --counts_of(block).allocated;
    EXPECT_TRUE(valid());
    hm_local_free(block);
  });
}

#include "hmalloc/huge.h"

#include "base/address_map.h"
#include "base/os_pages.h"
#include "hmalloc/allocator.h"
#include "hmalloc/large.h"
#include "hmalloc/regret.h"
#include "support.h"

using namespace hm;

namespace {

ChunkKind kind_of(void* block) { return AddressMap::kind(address_of(block)); }
void mark_ends(void* block, size_t size) {
  static_cast<char*>(block)[0] = 'a';
  static_cast<char*>(block)[size - 1] = 'z';
}

// A block of a size that the program asks for again and again.
char* allocate_recurring(size_t size) {
  hm_free(hm_malloc(size));
  return static_cast<char*>(hm_malloc(size));
}

size_t resident(char* from, size_t bytes) {
  auto* page = reinterpret_cast<char*>(align_up(address_of(from), os::page_size()));
  return os::resident(page, align_down(address_of(from + bytes), os::page_size()) - address_of(page));
}

// Frees each of these, of sizes that have been missed before.
void keep_all(const std::vector<size_t>& sizes, std::vector<char*>& blocks) {
  for (int round = 0; round < 2; ++round) {
    for (char* block : blocks) hm_free(block);
    blocks.clear();
    for (size_t size : sizes) blocks.push_back(static_cast<char*>(hm_malloc(size)));
  }
  for (char* block : blocks) {
    hm_free(block);
    if (block == blocks.front()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace

TEST(Regret, GrowsWithEachTimeInARow) {
  constexpr size_t kMost = 100 * kMiB;
  Regret regret;
  auto miss = [&](size_t bytes) {
    regret.gave_back(bytes);
    regret.mapped(bytes, kMost);
    return regret.allowance() / kMiB;
  };
  regret.mapped(8 * kMiB, kMost);
  EXPECT_EQ(regret.allowance(), 0u) << "nothing had gone back";
  regret.gave_back(4 * kMiB);
  regret.mapped(8 * kMiB, kMost);
  EXPECT_EQ(regret.allowance(), 0u) << "what had gone back was too short";
  EXPECT_EQ(miss(8 * kMiB), 8u);
  EXPECT_EQ(miss(8 * kMiB), 8u + 2 * 8);
  regret.mapped(8 * kMiB, kMost);
  EXPECT_EQ(regret.allowance(), 24 * kMiB) << "that had been asked for already";
  regret.kept_in_vain(4 * kMiB);
  EXPECT_EQ(miss(8 * kMiB), 20u + 8);
  EXPECT_EQ(miss(50 * kMiB), 100u) << "no more than the most";
}

TEST(Huge, ABlockHasAnExtentToItself) {
  HugeGauges before = huge_gauges();
  void* block = hm_malloc(5 * kMiB);
  EXPECT_EQ(kind_of(block), ChunkKind::kHuge);
  EXPECT_GE(hm_usable_size(block), 5 * kMiB);
  test::fill(block, hm_usable_size(block), 1);
  Extent* extent = huge_extent(block);
  ASSERT_NE(extent, nullptr);
  EXPECT_TRUE(huge_is_live(*extent));
  EXPECT_EQ(huge_size(*extent), 5 * kMiB);
  EXPECT_EQ(huge_extent(static_cast<char*>(block) + 16), nullptr);
  EXPECT_EQ(huge_gauges().blocks, before.blocks + 1);
  EXPECT_GT(huge_gauges().active, before.active + 5 * kMiB);
  hm_free(block);
  EXPECT_EQ(huge_gauges().active, before.active);
}

TEST(Huge, AFarBlockIsTheOnlyStartInItsGap) {
  void* block = hm_aligned_alloc(8 * kMiB, 2 * kMiB);
  EXPECT_EQ(kind_of(block), ChunkKind::kHugeAligned);
  char* gap = static_cast<char*>(block) - kChunk;
  EXPECT_EQ(kind_of(gap), ChunkKind::kHuge);
  EXPECT_EQ(huge_extent(gap + kSlice), nullptr);
  EXPECT_EQ(huge_extent(static_cast<char*>(block) + kSlice), nullptr);
  hm_free(block);
  hm_collect();
  EXPECT_EQ(kind_of(block), ChunkKind::kForeign);
  EXPECT_EQ(kind_of(gap), ChunkKind::kForeign);
}

TEST(Huge, AnExtentIsKeptOnceItsSizeRecurs) {
  void* first = hm_malloc(3 * kMiB + 100000);
  hm_free(first);
  EXPECT_EQ(kind_of(first), ChunkKind::kForeign);
  void* block = hm_malloc(3 * kMiB);
  memset(block, 1, 3 * kMiB);
  hm_free(block);
  EXPECT_EQ(huge_gauges().kept, 4 * kMiB);
  uint64_t calls = os::calls();
  void* again = hm_malloc(3 * kMiB - 100);
  EXPECT_EQ(again, block);
  EXPECT_EQ(os::calls(), calls);
  hm_free(again);
  hm_collect();
  EXPECT_EQ(kind_of(block), ChunkKind::kForeign);
  EXPECT_EQ(huge_gauges().mapped, 0u);
  EXPECT_EQ(huge_gauges().kept, 0u);
}

// As a vector does.
TEST(Huge, WhatGrowsByDoublingLeavesNothingBehind) {
  void* block = hm_malloc(2 * kMiB);
  for (size_t size = 4 * kMiB; size <= 64 * kMiB; size *= 2) {
    void* larger = hm_malloc(size);
    hm_free(block);
    block = larger;
    EXPECT_EQ(huge_gauges().kept, 0u);
  }
  hm_free(block);
}

TEST(Huge, WhatIsKeptInVainIsNotKeptAgain) {
  hm_free(allocate_recurring(3 * kMiB));
  EXPECT_EQ(huge_gauges().kept, 4 * kMiB);
  hm_collect();
  hm_free(hm_malloc(3 * kMiB));
  EXPECT_EQ(huge_gauges().kept, 0u);
}

TEST(Huge, AKeptExtentIsNoZeroedBlock) {
  char* block = allocate_recurring(3 * kMiB);
  memset(block, 1, 3 * kMiB);
  hm_free(block);
  void* again = hm_calloc(3, kMiB);
  EXPECT_EQ(again, block);
  EXPECT_TRUE(test::is_zero(again, 3 * kMiB));
  hm_free(again);
}

TEST(Huge, AKeptExtentIsSplitAndJoinedAgain) {
  char* block = allocate_recurring(16 * kMiB - kSlice);
  memset(block, 1, 16 * kMiB - kSlice);
  hm_free(block);
  uint64_t calls = os::calls();
  for (int round = 0; round < 3; ++round) {
    std::vector<char*> parts;
    for (size_t i = 0; i < 4; ++i) {
      parts.push_back(static_cast<char*>(hm_calloc(1, 4 * kMiB - kSlice)));
      EXPECT_EQ(parts[i], block + i * 4 * kMiB);
      EXPECT_EQ(huge_gauges().kept, (3 - i) * 4 * kMiB);
      EXPECT_TRUE(test::is_zero(parts[i], 4 * kMiB - kSlice));
      memset(parts[i], 1, hm_usable_size(parts[i]));
    }
    for (size_t i : {2, 0, 3, 1}) hm_free(parts[i]);
    EXPECT_EQ(kind_of(parts[2]), ChunkKind::kForeign) << "in the middle of one extent";
  }
  EXPECT_EQ(hm_malloc(16 * kMiB - kSlice), block);
  EXPECT_EQ(os::calls(), calls);
  hm_free(block);
}

TEST(Huge, AKeptExtentThatIsTooShortIsStretched) {
  char* block = allocate_recurring(8 * kMiB - kSlice);
  hm_free(hm_malloc(30 * kMiB));  // a larger one is missed as well
  memset(block, 1, 8 * kMiB - kSlice);
  hm_free(block);
  char* longer = static_cast<char*>(hm_malloc(16 * kMiB - kSlice));
  EXPECT_EQ(resident(longer, 8 * kMiB - kSlice), 8 * kMiB - kSlice) << "with its pages";
  EXPECT_EQ(resident(longer + 8 * kMiB, 8 * kMiB - kSlice), 0u);
  EXPECT_EQ(huge_gauges().mapped, 16 * kMiB);
  EXPECT_EQ(huge_gauges().kept, 0u);
  memset(longer, 1, hm_usable_size(longer));
  hm_free(longer);
}

TEST(Huge, WhatLiesBehindASmallerBlockGoesBackInTime) {
  char* block = allocate_recurring(4 * kMiB - kSlice);
  memset(block, 1, 4 * kMiB - kSlice);
  hm_free(block);
  char* smaller = static_cast<char*>(hm_malloc(5 * kMiB / 2));
  ASSERT_EQ(smaller, block);
  memset(smaller, 2, 5 * kMiB / 2);
  size_t behind = 4 * kMiB - kSlice - 5 * kMiB / 2;
  EXPECT_EQ(huge_gauges().kept, behind);
  EXPECT_EQ(resident(smaller + 5 * kMiB / 2, behind), behind);
  hm_collect();
  EXPECT_EQ(huge_gauges().kept, 0u);
  EXPECT_EQ(resident(smaller + 5 * kMiB / 2, behind), 0u);
  for (size_t i = 0; i < 5 * kMiB / 2; ++i) ASSERT_EQ(smaller[i], 2);
  hm_free(smaller);
}

TEST(Huge, ABlockThatGrewOverItsSlackKeepsItsPages) {
  char* block = allocate_recurring(4 * kMiB - kSlice);
  memset(block, 1, 4 * kMiB - kSlice);
  hm_free(block);
  char* smaller = static_cast<char*>(hm_malloc(5 * kMiB / 2));
  char* grown = static_cast<char*>(hm_realloc(smaller, 3 * kMiB));
  ASSERT_EQ(grown, block);
  memset(grown, 3, 3 * kMiB);
  hm_collect();
  for (size_t i = 0; i < 3 * kMiB; ++i) ASSERT_EQ(grown[i], 3);
  hm_free(grown);
}

TEST(Huge, ABlockThatShrinksGivesBackWhatIsBehindIt) {
  char* block = static_cast<char*>(hm_malloc(9 * kMiB));
  memset(block, 1, 9 * kMiB);
  ASSERT_EQ(hm_realloc(block, 3 * kMiB), block);
  EXPECT_EQ(huge_gauges().mapped, 4 * kMiB);
  EXPECT_EQ(resident(block + 3 * kMiB, kMiB / 2), 0u);
  hm_free(block);
}

TEST(Huge, ABlockGrowsIntoTheKeptExtentBehindIt) {
  char* block = allocate_recurring(16 * kMiB - kSlice);
  memset(block, 1, 16 * kMiB - kSlice);
  hm_free(block);
  uint64_t calls = os::calls();
  char* smaller = static_cast<char*>(hm_malloc(4 * kMiB - kSlice));
  test::fill(smaller, 4 * kMiB - kSlice, 3);
  char* grown = static_cast<char*>(hm_realloc(smaller, 10 * kMiB));
  EXPECT_EQ(grown, block);
  EXPECT_TRUE(test::matches(grown, 4 * kMiB - kSlice, 3));
  EXPECT_EQ(huge_gauges().kept, 4 * kMiB + 2 * kMiB - kSlice) << "the rest, and slack";
  EXPECT_EQ(kind_of(block + 12 * kMiB), ChunkKind::kHuge);
  EXPECT_EQ(kind_of(block + 4 * kMiB), ChunkKind::kForeign);
  EXPECT_EQ(os::calls(), calls);
  hm_free(grown);
  EXPECT_EQ(huge_gauges().kept, 16 * kMiB);
}

TEST(Huge, SlackIsCountedWithinTheExtent) {
  char* block = allocate_recurring(9 * kMiB);
  memset(block, 1, 9 * kMiB);
  block = static_cast<char*>(hm_realloc(block, 3 * kMiB));
  EXPECT_EQ(huge_gauges().kept, kMiB - kSlice);
  hm_free(block);
}

TEST(Huge, TheSmallestExtentThatFitsIsTaken) {
  std::vector<char*> blocks;
  keep_all({15 * kMiB, 3 * kMiB, 7 * kMiB}, blocks);
  EXPECT_EQ(huge_gauges().kept, 28 * kMiB);
  EXPECT_EQ(hm_malloc(3 * kMiB), blocks[1]);
  EXPECT_EQ(hm_malloc(7 * kMiB), blocks[2]);
  EXPECT_EQ(hm_malloc(5 * kMiB), blocks[0]);
  for (char* block : blocks) hm_free(block);
}

TEST(Huge, WhatIsKeptForTheLongestTimeMakesRoom) {
  std::vector<char*> blocks;
  keep_all({7 * kMiB, 7 * kMiB, 7 * kMiB}, blocks);
  ASSERT_EQ(huge_gauges().kept, 24 * kMiB);
  while (kind_of(blocks[0]) == ChunkKind::kHuge && huge_gauges().kept <= kKeepMost)
    hm_free(hm_aligned_alloc(4 * kMiB, 5 * kMiB));  // a mapping of its own each time
  EXPECT_EQ(kind_of(blocks[0]), ChunkKind::kForeign);
  EXPECT_EQ(kind_of(blocks[1]), ChunkKind::kHuge);
  EXPECT_EQ(kind_of(blocks[2]), ChunkKind::kHuge);
}

TEST(Huge, AFreedBlockDoesNotKeepItsNeighbourAlive) {
  char* block = allocate_recurring(8 * kMiB - kSlice);
  hm_free(block);
  void* part = hm_malloc(3 * kMiB);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  hm_free(part);
  std::this_thread::sleep_for(std::chrono::milliseconds(70));
  purge_huge_blocks(false);
  EXPECT_EQ(huge_gauges().kept, 0u) << "after half a decay time";
}

TEST(Huge, WhatIsKeptIsBounded) {
  std::mt19937 random(test::kSeed);
  std::vector<void*> blocks(40);
  size_t most_kept = 0;
  for (int i = 0; i < 4000; ++i) {
    void*& block = blocks[random() % (i / 500 % 2 == 0 ? 40 : 8)];
    hm_free(block);
    size_t size = kLargeMax + 1 + random() % (32 * kMiB);
    block = random() % 4 == 0 ? hm_aligned_alloc(4 * kMiB, size) : hm_malloc(size);  // far ones are mapped
    HugeGauges gauges = huge_gauges();
    ASSERT_LE(gauges.kept, std::max(kKeepMost, gauges.most_active + gauges.most_active / 2 - gauges.active));
    ASSERT_LE(gauges.active + gauges.kept, gauges.mapped);
    ASSERT_TRUE(huge_is_valid());
    most_kept = std::max(most_kept, gauges.kept);
  }
  EXPECT_GT(most_kept, kKeepMost);
  for (void* block : blocks) hm_free(block);
  hm_collect();
  EXPECT_EQ(huge_gauges().mapped, 0u);
}

TEST(Huge, AFarBlocksExtentServesOthers) {
  hm_free(hm_malloc(7 * kMiB));
  hm_free(hm_malloc(7 * kMiB));
  void* far = hm_aligned_alloc(kChunk, 5 * kMiB);
  EXPECT_EQ(kind_of(far), ChunkKind::kHugeAligned);
  hm_free(far);
  EXPECT_EQ(huge_gauges().kept, 8 * kMiB);
  EXPECT_EQ(kind_of(far), ChunkKind::kForeign);
  char* block = static_cast<char*>(hm_malloc(7 * kMiB));
  EXPECT_EQ(block, static_cast<char*>(far) - kChunk + kSlice);
  hm_free(block);
  hm_collect();
  EXPECT_EQ(huge_gauges().mapped, 0u);
}

TEST(Huge, BlocksGrowWithTheirContents) {
  size_t size = 2 * kMiB;
  void* block = hm_malloc(size);
  test::fill(block, size, 77);
  for (int i = 0; i < 6; ++i) {
    void* blocker = hm_malloc(2 * kMiB);  // often behind the block, so that it must move
    size_t bigger = size + size / 2;
    block = hm_realloc(block, bigger);
    ASSERT_NE(block, nullptr);
    ASSERT_TRUE(test::matches(block, size, 77));
    ASSERT_NE(huge_extent(block), nullptr);
    ASSERT_GE(hm_usable_size(block), bigger);
    size = bigger;
    test::fill(block, size, 77);
    hm_free(blocker);
  }
  block = hm_realloc(block, 2 * kMiB);
  EXPECT_TRUE(test::matches(block, 2 * kMiB, 77));
  EXPECT_LE(hm_usable_size(block), 2 * kMiB + kSlice);
  block = hm_realloc(block, 1000);
  EXPECT_TRUE(test::matches(block, 1000, 77));
  hm_free(block);
  hm_collect();
  EXPECT_EQ(huge_gauges().blocks, 0u);
  EXPECT_EQ(huge_gauges().mapped, 0u);
}

TEST(Huge, ThreadsShareTheKeptExtents) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      std::mt19937 random(test::kSeed + t);
      for (int i = 0; i < 150; ++i) {
        size_t size = kSmallMax + 1 + random() % (4 * kMiB);
        void* block = hm_malloc(size);
        mark_ends(block, size);
        size_t other = kSmallMax + 1 + random() % (4 * kMiB);
        block = hm_realloc(block, other);
        ASSERT_EQ(static_cast<char*>(block)[0], 'a');
        if (i % 50 == 0) hm_collect();
        hm_free(block);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(test::allocated_after_collect(), 0u);
  EXPECT_EQ(huge_gauges().blocks, 0u);
}

// Every page of every block says whose it is, while others split, join, stretch and purge around it.
TEST(Huge, NobodyPurgesWhatIsInUse) {
  auto mark = [](char* block, size_t from, size_t to, unsigned owner) {
    for (size_t at = align_up(from, 4096); at < to; at += 4096) memcpy(block + at, &owner, sizeof owner);
  };
  auto is_marked = [](const char* block, size_t size, unsigned owner) {
    for (size_t at = 0; at < size; at += 4096)
      if (memcmp(block + at, &owner, sizeof owner) != 0) return false;
    return true;
  };
  std::atomic<unsigned> working{3};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      struct Leave {
        std::atomic<unsigned>& working;
        ~Leave() { --working; }
      } leave{working};
      std::mt19937 random(test::kSeed + t);
      struct Held { char* block; size_t size; };
      std::vector<Held> held(4);
      for (unsigned i = 0; i < 200; ++i) {
        unsigned slot = random() % 4, owner = 4 * t + slot;
        auto& [block, size] = held[slot];
        ASSERT_TRUE(block == nullptr || is_marked(block, size, owner));
        size_t wanted = kLargeMax + 1 + random() % (5 * kMiB);
        if (block != nullptr && random() % 3 == 0) {
          block = static_cast<char*>(hm_realloc(block, wanted));
          ASSERT_TRUE(is_marked(block, std::min(size, wanted), owner));
          mark(block, std::min(size, wanted), wanted, owner);
        } else {
          hm_free(block);
          block = static_cast<char*>(random() % 4 == 0 ? hm_calloc(1, wanted) : hm_malloc(wanted));
          mark(block, 0, wanted, owner);
        }
        size = wanted;
      }
      for (Held& each : held) hm_free(each.block);
    });
  while (working > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    hm_collect();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(huge_is_valid());
  hm_collect();
  EXPECT_EQ(huge_gauges().mapped, 0u);
}

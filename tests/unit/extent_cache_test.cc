// What huge.cc does with extent_cache.h, from without.
#include "large/extent_cache.h"

#include "base/address_map.h"
#include "base/os_pages.h"
#include "large/huge.h"
#include "large/runs.h"
#include "support.h"

using namespace hm;
using namespace hm::test;

namespace {

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

TEST(ExtentCache, AnExtentIsKeptOnceItsSizeRecurs) {
  void* first = hm_malloc(3 * kMiB + 100000);
  hm_free(first);
  EXPECT_EQ(kind_of(first), ChunkKind::kGone);
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
  EXPECT_EQ(kind_of(block), ChunkKind::kGone);
  EXPECT_EQ(huge_gauges().mapped, 0u);
  EXPECT_EQ(huge_gauges().kept, 0u);
}

// As a vector does.
TEST(ExtentCache, WhatGrowsByDoublingLeavesNothingBehind) {
  void* block = hm_malloc(2 * kMiB);
  for (size_t size = 4 * kMiB; size <= 64 * kMiB; size *= 2) {
    void* larger = hm_malloc(size);
    hm_free(block);
    block = larger;
    EXPECT_EQ(huge_gauges().kept, 0u);
  }
  hm_free(block);
}

TEST(ExtentCache, WhatIsKeptInVainIsNotKeptAgain) {
  hm_free(allocate_recurring(3 * kMiB));
  EXPECT_EQ(huge_gauges().kept, 4 * kMiB);
  hm_collect();
  hm_free(hm_malloc(3 * kMiB));
  EXPECT_EQ(huge_gauges().kept, 0u);
}

TEST(ExtentCache, AKeptExtentIsNoZeroedBlock) {
  char* block = keep_written(3 * kMiB);
  void* again = hm_calloc(3, kMiB);
  EXPECT_EQ(again, block);
  EXPECT_TRUE(test::is_zero(again, 3 * kMiB));
  hm_free(again);
}

TEST(ExtentCache, AKeptExtentIsSplitAndJoinedAgain) {
  char* block = keep_written(16 * kMiB);
  uint64_t calls = os::calls();
  for (int round = 0; round < 3; ++round) {
    std::vector<char*> parts;
    for (size_t i = 0; i < 4; ++i) {
      parts.push_back(static_cast<char*>(hm_calloc(1, 4 * kMiB)));
      EXPECT_EQ(parts[i], block + i * 4 * kMiB);
      EXPECT_EQ(huge_gauges().kept, (3 - i) * 4 * kMiB);
      EXPECT_TRUE(test::is_zero(parts[i], 4 * kMiB));
      memset(parts[i], 1, hm_usable_size(parts[i]));
    }
    for (size_t i : {2, 0, 3, 1}) hm_free(parts[i]);
    EXPECT_EQ(kind_of(parts[2]), ChunkKind::kGone) << "in the middle of one extent";
  }
  EXPECT_EQ(hm_malloc(16 * kMiB), block);
  EXPECT_EQ(os::calls(), calls);
  hm_free(block);
}

TEST(ExtentCache, AKeptExtentThatIsTooShortIsStretched) {
  char* block = allocate_recurring(8 * kMiB);
  hm_free(hm_malloc(30 * kMiB));  // a larger one is missed as well
  memset(block, 1, 8 * kMiB);
  hm_free(block);
  char* longer = static_cast<char*>(hm_malloc(16 * kMiB));
  EXPECT_EQ(resident(longer, 8 * kMiB), 8 * kMiB) << "with its pages";
  EXPECT_EQ(resident(longer + 8 * kMiB, 8 * kMiB), 0u);
  EXPECT_EQ(huge_gauges().mapped, 16 * kMiB);
  EXPECT_EQ(huge_gauges().kept, 0u);
  memset(longer, 1, hm_usable_size(longer));
  hm_free(longer);
}

TEST(ExtentCache, TheSmallestExtentThatFitsIsTaken) {
  std::vector<char*> blocks;
  keep_all({15 * kMiB, 3 * kMiB, 7 * kMiB}, blocks);
  EXPECT_EQ(huge_gauges().kept, 28 * kMiB);
  EXPECT_EQ(hm_malloc(3 * kMiB), blocks[1]);
  EXPECT_EQ(hm_malloc(7 * kMiB), blocks[2]);
  EXPECT_EQ(hm_malloc(5 * kMiB), blocks[0]);
  for (char* block : blocks) hm_free(block);
}

TEST(ExtentCache, WhatIsKeptForTheLongestTimeMakesRoom) {
  std::vector<char*> blocks;
  keep_all({7 * kMiB, 7 * kMiB, 7 * kMiB}, blocks);
  ASSERT_EQ(huge_gauges().kept, 24 * kMiB);
  while (kind_of(blocks[0]) == ChunkKind::kHuge && huge_gauges().kept <= kMaxKept)
    hm_free(hm_aligned_alloc(4 * kMiB, 5 * kMiB));  // a mapping of its own each time
  EXPECT_EQ(kind_of(blocks[0]), ChunkKind::kGone);
  EXPECT_EQ(kind_of(blocks[1]), ChunkKind::kHuge);
  EXPECT_EQ(kind_of(blocks[2]), ChunkKind::kHuge);
}

TEST(ExtentCache, AFreedBlockDoesNotKeepItsNeighbourAlive) {
  char* block = allocate_recurring(8 * kMiB);
  hm_free(block);
  void* part = hm_malloc(3 * kMiB);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  hm_free(part);
  std::this_thread::sleep_for(std::chrono::milliseconds(70));
  purge_huge_blocks(false);
  EXPECT_EQ(huge_gauges().kept, 0u) << "after half a decay time";
}

TEST(ExtentCache, WhatIsKeptIsBounded) {
  std::mt19937 random(test::kSeed);
  std::vector<void*> blocks(40);
  size_t most_kept = 0;
  for (int i = 0; i < 4000; ++i) {
    void*& block = blocks[random() % (i / 500 % 2 == 0 ? 40 : 8)];
    hm_free(block);
    size_t size = kLargeMax + 1 + random() % (32 * kMiB);
    block = random() % 4 == 0 ? hm_aligned_alloc(4 * kMiB, size) : hm_malloc(size);  // far ones are mapped
    HugeGauges gauges = huge_gauges();
    ASSERT_LE(gauges.kept, std::max(kMaxKept, gauges.max_active + gauges.max_active / 2 - gauges.active));
    ASSERT_LE(gauges.active + gauges.kept, gauges.mapped);
    ASSERT_TRUE(huge_is_valid());
    most_kept = std::max(most_kept, gauges.kept);
  }
  EXPECT_GT(most_kept, kMaxKept);
  for (void* block : blocks) hm_free(block);
  hm_collect();
  EXPECT_EQ(huge_gauges().mapped, 0u);
}

TEST(ExtentCache, AnAlignedBlocksExtentServesOthers) {
  hm_free(hm_malloc(7 * kMiB));
  hm_free(hm_malloc(7 * kMiB));
  void* far = hm_aligned_alloc(8 * kChunk, 7 * kMiB);
  hm_free(far);
  EXPECT_EQ(huge_gauges().kept, 8 * kMiB);
  EXPECT_EQ(hm_aligned_alloc(kChunk, 7 * kMiB), far);
  hm_free(far);
  hm_collect();
  EXPECT_EQ(huge_gauges().mapped, 0u);
}

TEST(ExtentCache, ThreadsShareTheKeptExtents) {
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
TEST(ExtentCache, NobodyPurgesWhatIsInUse) {
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
      struct Held {
        char* block;
        size_t size;
      };
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

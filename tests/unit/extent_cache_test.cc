// What huge.cc does with extent_cache.h, from without.
#include "large/extent_cache.h"

#include <atomic>

#include "base/os_pages.h"
#include "large/huge.h"
#include "support.h"

using namespace hm;
using namespace hm::test;

namespace {

// Time alone purges nothing here, however long a busy machine stops a test.
struct ExtentCaches : NothingIsLost {
  ExtentCaches() { options.decay_ms = 60'000; }
  void TearDown() override {
    EXPECT_TRUE(huge_is_valid());
    NothingIsLost::TearDown();
    EXPECT_EQ(huge_gauges().mapped + huge_gauges().kept, 0u);
  }
};

char* allocate(size_t size) { return static_cast<char*>(hm_malloc(size)); }
size_t kept() { return huge_gauges().kept; }

// Frees one of each of these sizes, which have been missed before; the first a while before the others.
std::vector<char*> keep_all(const std::vector<size_t>& sizes) {
  std::vector<char*> blocks;
  for (int round = 0; round < 2; ++round) {
    for (char* block : blocks) hm_free(block);
    blocks.clear();
    for (size_t size : sizes) blocks.push_back(allocate(size));
  }
  for (char* block : blocks) {
    hm_free(block);
    if (block == blocks[0]) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return blocks;
}

}  // namespace

TEST_F(ExtentCaches, AnExtentIsKeptOnceItsSizeRecurs) {
  char* first = allocate(3 * kMiB + 100000);
  hm_free(first);
  EXPECT_EQ(kind_of(first), ChunkKind::kGone);
  char* block = allocate(3 * kMiB);
  memset(block, 1, 3 * kMiB);
  hm_free(block);
  EXPECT_EQ(kept(), 4 * kMiB);
  uint64_t calls = os::calls();
  EXPECT_EQ(allocate(3 * kMiB - 100), block);
  EXPECT_EQ(os::calls(), calls);
  hm_free(block);
  hm_collect();
  EXPECT_EQ(kind_of(block), ChunkKind::kGone);
}

// As a vector does.
TEST_F(ExtentCaches, WhatGrowsByDoublingLeavesNothingBehind) {
  char* block = allocate(2 * kMiB);
  for (size_t size = 4 * kMiB; size <= 64 * kMiB; size *= 2) {
    char* larger = allocate(size);
    hm_free(std::exchange(block, larger));
    EXPECT_EQ(kept(), 0u);
  }
  hm_free(block);
}

TEST_F(ExtentCaches, WhatIsKeptInVainIsNotKeptAgain) {
  hm_free(allocate_recurring(3 * kMiB));
  EXPECT_EQ(kept(), 4 * kMiB);
  hm_collect();
  hm_free(allocate(3 * kMiB));
  EXPECT_EQ(kept(), 0u);
}

TEST_F(ExtentCaches, AKeptExtentIsSplitAndJoinedAgain) {
  char* block = keep_written(16 * kMiB);
  uint64_t calls = os::calls();
  for (int round = 0; round < 3; ++round) {
    std::vector<char*> parts;
    for (size_t i = 0; i < 4; ++i) {
      parts.push_back(static_cast<char*>(hm_calloc(1, 4 * kMiB)));
      EXPECT_EQ(parts[i], block + i * 4 * kMiB);
      EXPECT_EQ(kept(), (3 - i) * 4 * kMiB);
      EXPECT_TRUE(is_zero(parts[i], 4 * kMiB));
      memset(parts[i], 1, hm_usable_size(parts[i]));
    }
    for (size_t i : {2, 0, 3, 1}) hm_free(parts[i]);
    EXPECT_EQ(kind_of(parts[2]), ChunkKind::kGone) << "in the middle of one extent";
  }
  EXPECT_EQ(allocate(16 * kMiB), block);
  EXPECT_EQ(os::calls(), calls);
  hm_free(block);
}

TEST_F(ExtentCaches, AKeptExtentThatIsTooShortIsStretched) {
  char* block = allocate_recurring(8 * kMiB);
  hm_free(allocate(30 * kMiB));  // a larger one is missed as well
  memset(block, 1, 8 * kMiB);
  hm_free(block);
  char* longer = allocate(16 * kMiB);
  EXPECT_EQ(resident(longer, 8 * kMiB), 8 * kMiB) << "with its pages";
  EXPECT_EQ(resident(longer + 8 * kMiB, 8 * kMiB), 0u);
  EXPECT_EQ(huge_gauges().mapped, 16 * kMiB);
  EXPECT_EQ(kept(), 0u);
  memset(longer, 1, hm_usable_size(longer));
  hm_free(longer);
}

TEST_F(ExtentCaches, TheSmallestExtentThatFitsIsTaken) {
  auto blocks = keep_all({15 * kMiB, 3 * kMiB, 7 * kMiB});
  EXPECT_EQ(kept(), 28 * kMiB);
  EXPECT_EQ(allocate(3 * kMiB), blocks[1]);
  EXPECT_EQ(allocate(7 * kMiB), blocks[2]);
  EXPECT_EQ(allocate(5 * kMiB), blocks[0]);
  for (char* block : blocks) hm_free(block);
}

TEST_F(ExtentCaches, WhatIsKeptForTheLongestTimeMakesRoom) {
  auto blocks = keep_all({7 * kMiB, 7 * kMiB, 7 * kMiB});
  ASSERT_EQ(kept(), 24 * kMiB);
  while (kind_of(blocks[0]) == ChunkKind::kHuge && kept() <= kMaxKept)
    hm_free(hm_aligned_alloc(4 * kMiB, 5 * kMiB));  // a mapping of its own each time
  EXPECT_EQ(kind_of(blocks[0]), ChunkKind::kGone);
  EXPECT_EQ(kind_of(blocks[1]), ChunkKind::kHuge);
  EXPECT_EQ(kind_of(blocks[2]), ChunkKind::kHuge);
}

TEST_F(ExtentCaches, AFreedBlockDoesNotKeepItsNeighbourAlive) {
  options.decay_ms = 500;
  hm_free(allocate_recurring(8 * kMiB));
  char* part = allocate(3 * kMiB);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  hm_free(part);
  std::this_thread::sleep_for(std::chrono::milliseconds(70));
  purge_huge_blocks(false);
  EXPECT_EQ(kept(), 0u) << "after half a decay time";
}

TEST_F(ExtentCaches, WhatIsKeptIsBounded) {
  std::mt19937 random(kSeed);
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
  free_all(blocks);
}

TEST_F(ExtentCaches, AnAlignedBlocksExtentServesOthers) {
  hm_free(allocate_recurring(7 * kMiB));
  hm_collect();
  hm_free(allocate_recurring(7 * kMiB));
  void* far = hm_aligned_alloc(8 * kChunk, 7 * kMiB);
  hm_free(far);
  EXPECT_EQ(kept(), 8 * kMiB);
  EXPECT_EQ(hm_aligned_alloc(kChunk, 7 * kMiB), far);
  hm_free(far);
}

namespace {

// Every page of a block says whose it is.
void mark(char* block, size_t from, size_t to, unsigned owner) {
  for (size_t at = align_up(from, 4096); at < to; at += 4096) memcpy(block + at, &owner, sizeof owner);
}
bool is_marked(const char* block, size_t size, unsigned owner) {
  for (size_t at = 0; at < size; at += 4096)
    if (memcmp(block + at, &owner, sizeof owner) != 0) return false;
  return true;
}

void use_large_blocks(unsigned thread) {
  std::mt19937 random(kSeed + thread);
  struct {
    char* block = nullptr;
    size_t size = 0;
  } held[4];
  for (int i = 0; i < 200; ++i) {
    unsigned slot = random() % 4, owner = 4 * thread + slot;
    auto& [block, size] = held[slot];
    ASSERT_TRUE(block == nullptr || is_marked(block, size, owner));
    size_t wanted = kSmallMax + 1 + random() % (6 * kMiB), same = 0;
    if (block != nullptr && random() % 3 == 0) {
      block = static_cast<char*>(hm_realloc(block, wanted));
      ASSERT_TRUE(is_marked(block, same = std::min(size, wanted), owner));
    } else {
      hm_free(block);
      block = static_cast<char*>(random() % 4 == 0 ? hm_calloc(1, wanted) : hm_malloc(wanted));
    }
    mark(block, same, size = wanted, owner);
  }
  for (auto& each : held) hm_free(each.block);
}

}  // namespace

// While others split, join, stretch and purge around it.
TEST_F(ExtentCaches, NobodyPurgesWhatIsInUse) {
  std::atomic<bool> done{false};
  std::thread purger([&] {
    while (!done.load()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      hm_collect();
    }
  });
  on_threads(3, use_large_blocks);
  done.store(true);
  purger.join();
}

// Heaps of the program's own, in all three libraries.
#include "threads/own_heaps.h"

#include <hmalloc/hmalloc.h>
#include <sys/resource.h>

#include <atomic>
#include <cerrno>
#include <csignal>

#include "at_every_instruction.h"
#include "base/os_pages.h"
#include "core/block_edges.h"
#include "large/huge.h"
#include "pages/footprint.h"
#include "profile/samples.h"
#include "support.h"

using namespace hm;
using namespace hm::test;

namespace {

const auto kAborts = testing::KilledBySignal(SIGABRT);
constexpr size_t kPage = 4 * kKiB;
constexpr char kNoHeap[] = "not a heap, or one that was destroyed";

// From every kind of memory: states by granule and by line, one slice and four, runs, extents.
const std::vector<size_t> kSizes{0,    1,    16,    17,    48,    64,      100,  1000,     4096,
                                 4097, 9000, 32000, 32768, 32769, 100'000, kMiB, kMiB + 1, 5 * kMiB};

hm_heap_stats stats_of(hm_heap* heap) {
  hm_heap_stats stats{sizeof stats, 0, 0, 0};
  hm_heap_stats_get(heap, &stats);
  return stats;
}
uint64_t blocks_in(hm_heap* heap) { return stats_of(heap).blocks; }

void* filled(hm_heap* heap, size_t size, unsigned seed) {
  void* block = hm_heap_malloc(heap, size);
  EXPECT_NE(block, nullptr);
  EXPECT_GE(hm_usable_size(block), size);
  fill(block, size, seed);
  return block;
}

std::vector<void*> blocks_of_all_sizes(hm_heap* heap, int of_each = 3) {
  std::vector<void*> blocks;
  for (int i = 0; i < of_each; ++i)
    for (size_t size : kSizes) blocks.push_back(filled(heap, size, static_cast<unsigned>(size)));
  return blocks;
}

std::vector<void*> many_in(hm_heap* heap, size_t n, size_t size) {
  std::vector<void*> blocks(n);
  for (void*& block : blocks) block = hm_heap_malloc(heap, size);
  return blocks;
}

// The thread has caches, in which no block of a heap may ever be.
struct OwnHeapsTest : NothingIsLost {
  OwnHeapsTest() {
    for (size_t size : kSizes) hm_free(hm_malloc(size));
  }
  hm_heap* heap = hm_heap_create();
};

struct WithTwo : OwnHeapsTest {
  hm_heap* other = hm_heap_create();
};

}  // namespace

// ---- blocks

TEST_F(OwnHeapsTest, ServesEverySizeAtEveryAlignment) {
  std::vector<std::pair<void*, size_t>> blocks;
  for (size_t size : kSizes)
    for (size_t alignment = 1; alignment <= 4 * kMiB; alignment *= 4) {
      void* block = hm_heap_aligned_alloc(heap, alignment, size);
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(address_of(block) % std::max(alignment, kGranule), 0u);
      EXPECT_GE(hm_usable_size(block), size);
      fill(block, size, static_cast<unsigned>(size + alignment));
      blocks.emplace_back(block, size);
    }
  EXPECT_EQ(blocks_in(heap), blocks.size());
  EXPECT_TRUE(everything_is_valid());
  size_t i = 0;
  for (size_t size : kSizes)
    for (size_t alignment = 1; alignment <= 4 * kMiB; alignment *= 4, ++i) {
      EXPECT_TRUE(matches(blocks[i].first, size, static_cast<unsigned>(size + alignment)));
      if (i % 2 == 0) hm_free(blocks[i].first);
    }
  EXPECT_EQ(blocks_in(heap), blocks.size() / 2);
  hm_heap_destroy(heap);
}

TEST_F(OwnHeapsTest, WhatIsAskedForZeroedIsZero) {
  for (int round = 0; round < 2; ++round)  // the second finds what the first has written
    for (size_t size : kSizes) {
      void* block = hm_heap_calloc(heap, size, 1);
      EXPECT_TRUE(is_zero(block, size));
      fill(block, size, 7);
      hm_free(block);
    }
  hm_heap_destroy(heap);
}

TEST_F(OwnHeapsTest, RefusesAsMallocDoes) {
  errno = 0;
  EXPECT_EQ(hm_heap_malloc(heap, SIZE_MAX / 2), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  errno = 0;
  std::atomic<size_t> half{SIZE_MAX / 2 + 1};  // the compiler would warn
  EXPECT_EQ(hm_heap_calloc(heap, half, 2), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  errno = 0;
  EXPECT_EQ(hm_heap_aligned_alloc(heap, 24, 1), nullptr);
  EXPECT_EQ(errno, EINVAL);
  void* block = filled(heap, 100, 1);
  EXPECT_EQ(hm_heap_realloc(heap, block, SIZE_MAX / 2), nullptr);
  EXPECT_TRUE(matches(block, 100, 1));
  EXPECT_EQ(blocks_in(heap), 1u);
  hm_heap_destroy(heap);
}

TEST_F(OwnHeapsTest, AResizedBlockStaysInItsHeap) {
  void *ours = nullptr, *plain = filled(heap, 1, 1);
  size_t before = 1;
  for (size_t size : {100u, 40u, 5000u, 40'000u, 90'000u, 3'000'000u, 9'000'000u, 70'000u, 2'000'000u, 20'000u, 30u}) {
    ours = hm_heap_realloc(heap, ours, size);
    plain = hm_realloc(plain, size);
    ASSERT_TRUE(ours != nullptr && plain != nullptr);
    EXPECT_TRUE(matches(plain, std::min(before, size), 1));
    fill(plain, size, 1);
    EXPECT_EQ(blocks_in(heap), 2u);
    EXPECT_GE(stats_of(heap).held, 2 * size);
    EXPECT_TRUE(everything_is_valid());
    before = size;
  }
  EXPECT_EQ(hm_heap_realloc(heap, ours, 0), nullptr);
  EXPECT_EQ(blocks_in(heap), 1u);
  hm_heap_destroy(heap);
}

TEST_F(OwnHeapsTest, AnyThreadFreesAndNothingWaitsInItsCache) {
  std::vector<void*> blocks = blocks_of_all_sizes(heap);
  std::vector<void*> more = many_in(heap, 10'000, 40);
  blocks.insert(blocks.end(), more.begin(), more.end());
  on_threads(4, [&](unsigned number) {
    for (size_t i = number; i < blocks.size(); i += 4) hm_free(blocks[i]);
  });
  EXPECT_EQ(blocks_in(heap), 0u);
  hm_heap_destroy(heap);
}

TEST_F(OwnHeapsTest, BlocksOfThreadsThatEndedAreItsOwn) {
  std::vector<void*> blocks(6 * 1000);
  on_threads(6, [&](unsigned number) {
    for (size_t i = 0; i < 1000; ++i) blocks[number * 1000 + i] = filled(heap, 10 + i, number);
  });
  for (size_t i = 0; i < blocks.size(); ++i) EXPECT_TRUE(matches(blocks[i], 10 + i % 1000, static_cast<unsigned>(i / 1000)));
  EXPECT_EQ(blocks_in(heap), blocks.size());
  hm_heap_destroy(heap);
}

TEST_F(WithTwo, NoTwoShareASlice) {
  constexpr size_t kSize = 24;
  std::set<uintptr_t> slices[3];
  for (int i = 0; i < 5000; ++i) {
    void* blocks[] = {hm_heap_malloc(heap, kSize), hm_heap_malloc(other, kSize), hm_malloc(kSize)};
    for (int k = 0; k < 3; ++k) slices[k].insert(address_of(blocks[k]) / kSlice);
    hm_free(blocks[2]);
    if (i % 3 == 0) hm_free(blocks[i % 2]);
  }
  for (uintptr_t slice : slices[0]) EXPECT_FALSE(slices[1].contains(slice) || slices[2].contains(slice));
  for (uintptr_t slice : slices[1]) EXPECT_FALSE(slices[2].contains(slice));
  hm_heap_destroy(heap);
  hm_heap_destroy(other);
}

TEST_F(OwnHeapsTest, WhatWasAHeapsServesOthers) {
  blocks_of_all_sizes(heap);
  many_in(heap, 10'000, 100);
  hm_heap_destroy(heap);
  for (size_t size : kSizes) {
    std::vector<void*> blocks = allocate_many(20, size);
    for (void*& block : blocks) block = hm_realloc(block, size + 1);
    free_all(blocks);
  }
}

// ---- statistics

TEST_F(WithTwo, CountsExactly) {
  hm_heap_stats empty = stats_of(heap);
  EXPECT_EQ(empty.blocks + empty.allocated + empty.held, 0u);
  std::vector<void*> blocks = blocks_of_all_sizes(heap);
  uint64_t bytes = 0;
  for (void* block : blocks)
    bytes += !kHardened                             ? hm_usable_size(block)
             : kind_of(block) == ChunkKind::kSlices ? Superblock::of(address_of(block)).block_size
                                                    : hm_usable_size(block);
  hm_heap_stats full = stats_of(heap);
  EXPECT_EQ(full.blocks, blocks.size());
  EXPECT_EQ(full.allocated, bytes);
  EXPECT_GE(full.held, full.allocated);
  EXPECT_EQ(blocks_in(other), 0u);
  EXPECT_GE(stats_now().allocated, full.allocated);
  for (size_t i = blocks.size(); i-- > 0;) {
    hm_free(blocks[i]);
    EXPECT_EQ(blocks_in(heap), i);
  }
  EXPECT_EQ(stats_of(heap).allocated, 0u);
  hm_heap_destroy(heap);
  hm_heap_destroy(other);
}

TEST_F(OwnHeapsTest, FillsInNoMoreThanTheProgramKnows) {
  EXPECT_NE(hm_heap_malloc(heap, 100), nullptr);
  hm_heap_stats old{offsetof(hm_heap_stats, allocated), 0, 4711, 4711};
  hm_heap_stats_get(heap, &old);
  EXPECT_EQ(old.blocks, 1u);
  EXPECT_EQ(old.allocated, 4711u);
  struct {
    hm_heap_stats known;
    uint64_t more = 4711;
  } later{{sizeof later, 0, 0, 0}};
  hm_heap_stats_get(heap, &later.known);
  EXPECT_EQ(later.known.size, sizeof(hm_heap_stats));
  EXPECT_EQ(later.more, 4711u);
  hm_heap_destroy(heap);
}

// ---- memory

TEST_F(OwnHeapsTest, DestroyGivesAllBack) {
  hm_collect();
  size_t slices = slice_pool.used(), huge = huge_gauges().active;
  for (int round = 0; round < 3; ++round) {
    blocks_of_all_sizes(heap);
    many_in(heap, 100'000, 100);
    EXPECT_GT(slice_pool.used(), slices);
    hm_heap_destroy(heap);
    EXPECT_EQ(slice_pool.used(), slices);
    EXPECT_EQ(huge_gauges().active, huge);
    heap = hm_heap_create();
  }
  hm_heap_destroy(heap);
}

// All but the superblock that it allocates from, at the last free and with no help from anybody.
TEST_F(OwnHeapsTest, WhatBecomesEmptyGoesBack) {
  size_t slices = slice_pool.used();
  free_all(many_in(heap, 100'000, 100));
  EXPECT_LE(slice_pool.used(), slices + 1);
  EXPECT_LE(stats_of(heap).held, kSlice);
  hm_collect();
  EXPECT_EQ(stats_of(heap).held, 0u);
  hm_heap_destroy(heap);
}

TEST_F(OwnHeapsTest, ACollectionGivesHolesBack) {
  if (os::page_size() > kPage) GTEST_SKIP();
  std::vector<void*> blocks = many_in(heap, 4096, kPage - (kHardened ? 8 : 0));  // the hardened library's have edges
  for (void* block : blocks) memset(block, 1, kPage - 8);
  std::vector<void*> kept = take_one_of_each_slice(blocks, kPage);
  free_all(blocks);
  uint64_t before = footprint.purged();
  hm_collect();
  EXPECT_GE(footprint.purged() - before, blocks.size() / 2 * kPage);
  for (void* block : kept) EXPECT_EQ(*static_cast<char*>(block), 1);
  hm_heap_destroy(heap);
}

TEST_F(OwnHeapsTest, FreedBlocksServeAgainBeforeItGrows) {
  std::vector<void*> blocks = many_in(heap, 100'000, 48);
  uint64_t peak = stats_of(heap).held;
  std::mt19937 random(kSeed);
  for (int round = 0; round < 10; ++round) {
    std::shuffle(blocks.begin(), blocks.end(), random);
    for (size_t i = 0; i < blocks.size() / 2; ++i) hm_free(blocks[i]);
    for (size_t i = 0; i < blocks.size() / 2; ++i) blocks[i] = hm_heap_malloc(heap, 48);
  }
  EXPECT_LE(stats_of(heap).held, peak + peak / 4);
  hm_heap_destroy(heap);
}

TEST_F(OwnHeapsTest, ThousandsComeAndGoInTheSamePlaces) {
  hm_stats before = stats_now();
  for (int i = 0; i < 100'000; ++i) {
    hm_heap* one = hm_heap_create();
    ASSERT_NE(hm_heap_malloc(one, 100), nullptr);
    hm_heap_destroy(one);
  }
  EXPECT_LE(stats_now().mapped, before.mapped);
  // Superblocks of this thread come and go, too; in the hardened library anywhere, each with states on other pages.
  EXPECT_LE(stats_now().metadata, before.metadata + (kHardened ? 32 * kKiB : kOwnHeapPlace));
  hm_heap_destroy(heap);
}

TEST_F(OwnHeapsTest, ThereMayBeThousandsAtOnce) {
  std::vector<hm_heap*> heaps(3000);
  for (hm_heap*& each : heaps) {
    each = hm_heap_create();
    ASSERT_NE(hm_heap_malloc(each, 8), nullptr);
  }
  EXPECT_EQ(std::set<hm_heap*>(heaps.begin(), heaps.end()).size(), heaps.size());
  for (hm_heap* each : heaps) {
    EXPECT_EQ(blocks_in(each), 1u);
    hm_heap_destroy(each);
  }
  hm_heap_destroy(heap);
}

// Sanitizers have mappings of their own while they run.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(OwnHeapsTest, WithoutMemoryThereIsNone) {
  EXPECT_TRUE(child_succeeds([] {
    rlimit none{mapped_bytes(), mapped_bytes()};
    if (setrlimit(RLIMIT_AS, &none) != 0) return false;
    for (size_t i = 0; i < 10'000; ++i) {
      errno = 0;
      if (hm_heap_create() == nullptr) return errno == ENOMEM;
    }
    return false;
  }));
  hm_heap_destroy(heap);
}
#endif

// ---- forks

TEST_F(OwnHeapsTest, AChildUsesAndDestroysWhatItInherits) {
  std::vector<void*> blocks = blocks_of_all_sizes(heap);
  EXPECT_TRUE(child_succeeds([&] {
    for (size_t i = 0; i < blocks.size(); i += 2) hm_free(blocks[i]);
    blocks_of_all_sizes(heap);
    if (blocks_in(heap) != blocks.size() / 2 + blocks.size() || !everything_is_valid()) return false;
    hm_heap_destroy(heap);
    return allocated_after_collect() == 0;
  }));
  EXPECT_EQ(blocks_in(heap), blocks.size());
  hm_heap_destroy(heap);
}

TEST_F(OwnHeapsTest, AChildMayBeForkedWhileOthersUseIt) {
  std::atomic<bool> stop{false};
  std::atomic<unsigned> at_work{0};
  auto work = [&](unsigned number) {
    std::mt19937 random(number);
    for (++at_work; !stop;) {
      void* block = hm_heap_malloc(heap, kSizes[random() % kSizes.size()]);
      if (random() % 2 == 0) block = hm_heap_realloc(heap, block, kSizes[1 + random() % (kSizes.size() - 1)]);
      hm_free(block);
      hm_heap_destroy(hm_heap_create());
    }
  };
  std::thread workers[] = {std::thread(work, 0), std::thread(work, 1), std::thread(work, 2)};
  while (at_work < 3) {}
  for (int i = 0; i < 50; ++i)
    EXPECT_TRUE(child_succeeds([&] {
      hm_heap* fresh = hm_heap_create();
      for (size_t size : kSizes) {
        if (hm_heap_malloc(heap, size) == nullptr || hm_heap_malloc(fresh, size) == nullptr) return false;
      }
      hm_heap_destroy(heap);
      hm_heap_destroy(fresh);
      hm_collect();
      return everything_is_valid();
    }));
  stop = true;
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(blocks_in(heap), 0u);
  hm_heap_destroy(heap);
}

#if HM_STEPS && !defined(__SANITIZE_ADDRESS__)
namespace {

// In the child of a fork that cut another thread off in the middle of something.
bool can_be_used_and_destroyed(hm_heap* heap) {
  for (hm_heap* each : {heap, hm_heap_create()}) {
    for (size_t size : {100u, 5000u, 40'000u, 2'000'000u}) {
      void* block = hm_heap_realloc(each, hm_heap_malloc(each, size), size + size / 2);
      if (block == nullptr) return false;
      memset(block, 1, size);
    }
    if (!everything_is_valid()) return false;
    hm_check();
    hm_heap_destroy(each);
  }
  return everything_is_valid();
}

}  // namespace

TEST_F(WithTwo, AChildHasItsHeapsWhereverAnotherThreadWas) {
  constexpr size_t kFills = kSlice / 1024;  // of the class of 1 KB, with an edge or without
  size_t edge = kHardened ? 8 : 0;
  constexpr size_t kMany = kHardened ? 5003 : 1009;     // instructions from fork to fork, of operations that take many
  constexpr size_t kRun = kHardened ? 36'864 : 73'728;  // there all bytes are looked at or cleared, one instruction each
  constexpr size_t kHuge = kHardened ? kRun : 3'000'000;
  void* last = nullptr;
  struct {
    const char* name;
    std::function<void()> operation, before = [] {};
    size_t stride = kMany;
  } cases[] = {
      {"a superblock is opened", [&] { (void)!hm_heap_malloc(heap, 300); }, [] {}, 61},
      {"a block is taken", [&] { (void)!hm_heap_malloc(heap, 300); }, [] {}, 61},
      {"another superblock", [&] { (void)!hm_heap_malloc(heap, 1024 - edge); }, [&] { many_in(heap, kFills, 1024 - edge); },
       61},
      {"the last block of a superblock is freed", [&] { hm_free(last); },
       [&] {
         std::vector<void*> blocks = many_in(heap, 2 * kFills + 1, 1024 - edge);
         last = blocks[kFills];
         for (void* block : blocks)
           if (address_of(block) / kSlice == address_of(last) / kSlice && block != last) hm_free(block);
       },
       61},
      {"a run", [&] { (void)!hm_heap_malloc(heap, kRun); }},
      {"a run is freed", [&, block = hm_heap_malloc(heap, kRun)] { hm_free(block); }, [&] { many_in(heap, 2, kRun); }},
      {"a run grows", [&, block = hm_heap_malloc(heap, kRun)] { (void)!hm_realloc(block, kRun + kRun / 2); }},
      {"an extent", [&] { (void)!hm_heap_malloc(heap, kHuge); }},
      {"an extent is freed", [&, block = hm_heap_malloc(heap, kHuge)] { hm_free(block); }},
      {"an extent grows", [&, block = hm_heap_malloc(heap, kHuge)] { (void)!hm_realloc(block, 2 * kHuge); }, [] {},
       kHardened ? kMany : 61},
      {"a heap is made", [&] { hm_heap_create(); }, [] {}, 61},
      {"a heap is destroyed", [&] { hm_heap_destroy(other); },
       [&] {
         EXPECT_EQ(many_in(other, 40, 100).size() + many_in(other, 2, kRun).size() + many_in(other, 2, kHuge).size(), 44u);
       }},
      {"a collection", [] { hm_collect(); }, [&] { free_all(many_in(heap, 300, 300)); }},
  };
  for (auto& each : cases) {
    each.before();
    Steps steps = fork_at_every_instruction(each.operation, [&] { return can_be_used_and_destroyed(heap); }, {each.stride});
    EXPECT_EQ(steps.failed, 0u) << each.name << ": the child of the fork at this instruction failed";
    EXPECT_GT(steps.seen, 10u) << each.name;
  }
  hm_heap_destroy(heap);
}
#endif

// ---- profiles

TEST_F(OwnHeapsTest, ASampledBlockOfItsLeavesTheProfile) {
  ASSERT_EQ(hm_profile_start(1), 0);  // each block is sampled
  std::vector<void*> blocks = blocks_of_all_sizes(heap);
  EXPECT_TRUE(samples.any());
  EXPECT_EQ(blocks_in(heap), blocks.size());
  for (size_t i = 0; i < blocks.size(); i += 2) hm_free(blocks[i]);
  EXPECT_EQ(blocks_in(heap), blocks.size() / 2);
  EXPECT_TRUE(everything_is_valid());
  hm_profile_stop();
  EXPECT_TRUE(samples.any());
  hm_heap_destroy(heap);
  EXPECT_FALSE(samples.any());
}

// ---- misuse

using OwnHeapsDeathTest = WithTwo;

TEST_F(OwnHeapsDeathTest, ADestroyedHeapIsKnown) {
  hm_heap_destroy(other);
  EXPECT_EXIT((void)!hm_heap_malloc(other, 1), kAborts, std::string("hm_heap_malloc\\(.*\\): ") + kNoHeap + HM_LAST_LINE);
  EXPECT_EXIT((void)!hm_heap_calloc(other, 1, 1), kAborts, kNoHeap);
  EXPECT_EXIT((void)!hm_heap_aligned_alloc(other, 16, 1), kAborts, kNoHeap);
  EXPECT_EXIT((void)!hm_heap_realloc(other, nullptr, 1), kAborts, kNoHeap);
  EXPECT_EXIT(stats_of(other), kAborts, kNoHeap);
  EXPECT_EXIT(hm_heap_destroy(other), kAborts, kNoHeap);
  hm_heap* successor = hm_heap_create();  // in the same place
  EXPECT_NE(successor, other);
  EXPECT_EXIT((void)!hm_heap_malloc(other, 1), kAborts, kNoHeap);
  hm_heap_destroy(successor);
  hm_heap_destroy(heap);
}

TEST_F(OwnHeapsDeathTest, WhatNeverWasAHeapIsKnown) {
  hm_heap_destroy(other);
  int local = 0;
  void *block = hm_heap_malloc(heap, 100), *large = hm_heap_malloc(heap, 2 * kMiB);
  auto at = [&](ptrdiff_t offset) { return reinterpret_cast<char*>(heap) + offset; };
  uintptr_t chunk = align_down(address_of(heap), kChunk);
  std::vector<void*> wrong{nullptr,
                           &local,
                           block,
                           large,
                           reinterpret_cast<void*>(-8),
                           reinterpret_cast<void*>(chunk),
                           reinterpret_cast<void*>(chunk + kGuard),
                           reinterpret_cast<void*>(chunk + kGuard + 1),
                           reinterpret_cast<void*>(chunk + kChunk - kGuard),
                           reinterpret_cast<void*>(chunk + kChunk - 1),
                           reinterpret_cast<void*>(chunk + kChunk - kGuard - kOwnHeapPlace),
                           at(1),
                           at(-1),
                           at(8),
                           at(kOwnHeapPlace)};
  for (void* each : wrong) EXPECT_EXIT((void)!hm_heap_malloc(static_cast<hm_heap*>(each), 1), kAborts, kNoHeap);
  EXPECT_EXIT(hm_free(heap), kAborts, "not a block of hmalloc|misaligned pointer");
  hm_heap_destroy(nullptr);
  hm_heap_destroy(heap);
}

TEST_F(OwnHeapsDeathTest, ADoubleFreeIsFound) {
  for (size_t size : kSizes) {
    void *block = hm_heap_malloc(heap, size), *another = hm_heap_malloc(heap, size);
    EXPECT_EXIT((hm_free(block), hm_free(block)), kAborts, "double free");
    hm_free(another);
  }
  hm_heap_destroy(heap);
  hm_heap_destroy(other);
}

TEST(BlockState, OfTwoThatEndAnOwnOneOneDoes) {
  BlockState state(BlockState::kOwn);
  EXPECT_FALSE(state.is_taken() || state.is_free() || state.end_sample());
  EXPECT_TRUE(state.end_own());
  EXPECT_FALSE(state.end_own());
}

TEST_F(OwnHeapsDeathTest, OfTwoFreesAtOnceOneIsFound) {
  EXPECT_EXIT(
      for (;;) {  // the second may come when the first is done
        void* block = hm_heap_malloc(heap, 100);
        std::atomic<int> ready{0};
        on_threads(2, [&](unsigned) {
          ++ready;
          while (ready < 2) {}
          hm_free(block);
        });
      },
      kAborts, "double free");
  hm_heap_destroy(heap);
  hm_heap_destroy(other);
}

TEST_F(OwnHeapsDeathTest, ABlockOfAnotherHeapIsNotResized) {
  for (size_t size : kSizes)
    for (void* block : {hm_heap_malloc(other, size), hm_malloc(size)}) {
      EXPECT_EXIT((void)!hm_heap_realloc(heap, block, 50), kAborts, "not a block of this heap");
      hm_free(block);
    }
  hm_heap_destroy(heap);
  hm_heap_destroy(other);
}

TEST_F(OwnHeapsDeathTest, AFreedBlockIsNotResized) {
  for (size_t size : kSizes) {
    void* block = hm_heap_malloc(heap, size);
    hm_free(block);
    EXPECT_EXIT((void)!hm_heap_realloc(heap, block, 50), kAborts, "double free");
  }
  hm_heap_destroy(heap);
  hm_heap_destroy(other);
}

#if defined(HM_HARDENED)
TEST_F(OwnHeapsDeathTest, DestroyLooksAtWhatLiesAroundItsBlocks) {
  for (size_t size : kSizes) {
    auto* block = static_cast<volatile char*>(hm_heap_malloc(heap, size));
    if (size > BlockEdges::kMostSize && size % kGranule == 0) continue;  // the next byte is a fault
    char before = block[size];
    block[size] = static_cast<char>(~before);
    EXPECT_EXIT(hm_heap_destroy(heap), kAborts, "written to behind its end");
    EXPECT_EXIT(hm_check(), kAborts, "written to behind its end");
    block[size] = before;
  }
  EXPECT_EQ(hm_check(), blocks_in(heap));
  hm_heap_destroy(heap);
  hm_heap_destroy(other);
}

TEST_F(OwnHeapsDeathTest, AFreedBlockOfItsThatIsWrittenToIsFound) {
  std::vector<void*> blocks = many_in(heap, 1000, 100);
  auto* block = static_cast<volatile char*>(blocks[7]);
  for (size_t i = 0; i < 30; ++i) hm_free(blocks[i]);
  block[5] = 1;
  EXPECT_EXIT(many_in(heap, 1000, 100), kAborts, "written to after it was freed");
  block[5] = 0;
  hm_heap_destroy(heap);
  hm_heap_destroy(other);
}

TEST_F(WithTwo, NobodyKnowsWhichNeighbourIsNext) {
  size_t rising = 0, n = 1000;
  std::vector<void*> blocks = many_in(heap, n, 40);
  for (size_t i = 1; i < n; ++i) rising += blocks[i] > blocks[i - 1];
  EXPECT_GT(rising, n / 4);
  EXPECT_LT(rising, n - n / 8);
  hm_heap_destroy(heap);
  hm_heap_destroy(other);
}
#endif

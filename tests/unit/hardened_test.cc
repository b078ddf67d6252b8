// The hardened library's small blocks: each protection, with what it stops.
#include "hardened.h"

#include <hmalloc/hmalloc.h>
#include <hmalloc/hmalloc_local.h>
#include <pthread.h>

#include <atomic>
#include <deque>
#include <map>

#include "at_every_instruction.h"
#include "base/clock.h"
#include "base/secret.h"
#include "core/block_edges.h"
#include "core/quarantine.h"
#include "pages/options.h"
#include "threads/registry.h"

using namespace hm;
using namespace hm::test;

namespace {

const std::vector<size_t> kSizes{0, 1, 7, 8, 9, 24, 25, 40, 100, 119, 120, 500, 1000, 4000, 4096, 5000, 20000, 30000, 32760};

size_t capacity_of(const void* block) { return Superblock::of(address_of(block)).block_size; }
size_t index_in_superblock(const void* block) {
  return BlockPlace(Superblock::of(address_of(block)), address_of(block)).index();
}

// One with another in front of it.  What is written there must be even: an edge's first byte is odd, and one that happens to be
// written again is not found.
char* allocate_behind_another(size_t size) {
  for (;;) {
    char* block = allocate(size);
    if (index_in_superblock(block) > 0) return block;
  }
}

size_t waiting_in(ThreadHeap& heap) {
  size_t n = 0;
  while (void* block = heap.quarantine().take()) {
    find_block(block).state.mark_taken();
    ++n;
  }
  return n;
}

}  // namespace

// ---- what is handed out

TEST(Hardened, ABlockIsAsLongAsItWasRequested) {
  std::vector<std::pair<char*, size_t>> blocks;
  for (size_t size : kSizes)
    for (size_t alignment = 16; alignment <= 4096; alignment *= 2) {
      auto* block = static_cast<char*>(hm_aligned_alloc(alignment, size));
      EXPECT_EQ(address_of(block) % alignment, 0u);
      EXPECT_EQ(hm_usable_size(block), size);
      fill(block, size, static_cast<unsigned>(size + alignment));
      blocks.emplace_back(block, alignment);
    }
  for (auto [block, alignment] : blocks) {
    size_t size = hm_usable_size(block);
    EXPECT_TRUE(matches(block, size, static_cast<unsigned>(size + alignment)));
    hm_free(block);
  }
  EXPECT_EQ(hm_usable_size(nullptr), 0u);
}

TEST(Hardened, EveryBlockReadsAsZero) {
  for (int round = 0; round < 3; ++round)
    for (size_t size : kSizes) {
      std::vector<void*> blocks;
      for (int i = 0; i < 20; ++i) {
        blocks.push_back(i % 2 == 0 ? hm_malloc(size) : hm_calloc(1, size));
        EXPECT_TRUE(is_zero(blocks.back(), size));
        memset(blocks.back(), 0xa5, size);
      }
      free_all(blocks);
    }
  volatile size_t many = SIZE_MAX / 2;
  EXPECT_EQ(hm_calloc(many, 3), nullptr);
}

TEST(Hardened, NeighboursAreMixed) {
  std::vector<void*> blocks = allocate_many(512, 1000);
  size_t in_order = 0;
  for (size_t i = 1; i < blocks.size(); ++i) in_order += address_of(blocks[i]) == address_of(blocks[i - 1]) + 1024;
  EXPECT_LT(in_order, blocks.size() / 3) << "by chance about one in eight";
  free_all(blocks);
}

TEST(Hardened, RegionsLieAtRandomPlacesNotFarFromEachOther) {
  std::set<uintptr_t> regions;
  std::vector<void*> blocks = allocate_many(100 * kMiB / 32760, 32760);
  for (void* block : blocks) regions.insert(align_down(address_of(block), kRegion));
  ASSERT_GE(regions.size(), 6u);
  EXPECT_LT(*regions.rbegin() - *regions.begin(), 64 * kKiB * kMiB);
  uintptr_t before = 0;
  size_t adjacent = 0;
  for (uintptr_t region : regions) adjacent += region == std::exchange(before, region) + kRegion;
  EXPECT_LT(adjacent, 3u);
  free_all(blocks);
}

// ---- edges and canaries

TEST(Hardened, OneByteTooFarIsFoundAtTheFree) {
  for (size_t size : kSizes)
    for (char value : {'\0', 'x'}) {
      char* block = allocate(size);
      EXPECT_EXIT((write_to(block, static_cast<ptrdiff_t>(size), value), hm_free(block)), kAborted,
                  std::string("^hmalloc: hm_free\\(0x[0-9a-f]+\\): ") + kBehind)
          << size;
    }
}

TEST(Hardened, WhateverIsWrittenBehindARequestIsFound) {
  char* block = allocate(1029);
  size_t capacity = capacity_of(block);
  ASSERT_GT(capacity, 1029u + 100);
  for (size_t at : {size_t{1030}, size_t{1044}, size_t{1045}, size_t{1050}, capacity - 9, capacity - 8, capacity - 1})
    EXPECT_EXIT((write_to(block, static_cast<ptrdiff_t>(at), 'x'), hm_free(block)), kAborted, kBehind) << at;
  EXPECT_EXIT((write_to(block, 1029, 'x'), std::ignore = hm_realloc(block, 1100)), kAborted, kBehind);
  EXPECT_EXIT((write_to(block, static_cast<ptrdiff_t>(capacity) - 1, 'x'), (void)hm_usable_size(block)), kAborted, kBehind);
  hm_free(block);
}

TEST(Hardened, WhatIsWrittenInFrontIsFound) {
  for (size_t size : {24, 100, 1000, 8000}) {
    char* block = allocate_behind_another(size);
    EXPECT_EXIT((write_to(block, -1, 'x'), write_to(block, -8, 'z'), hm_free(block)), kAborted, kInFront) << size;
    EXPECT_EXIT((write_to(block, -8, 'z'), std::ignore = hm_realloc(block, size - 1)), kAborted, kInFront) << size;
  }
}

TEST(Hardened, AnEdgeSaysForWhichAddressItIs) {
  alignas(16) char here[64] = {}, there[64] = {};
  BlockEdges(here, 64).write(20, 16);
  memcpy(there, here, 64);
  EXPECT_EQ(BlockEdges(here, 64).fault(true), nullptr);
  EXPECT_NE(BlockEdges(there, 64).fault(true), nullptr);
  here[62] ^= 2;  // the size
  EXPECT_NE(BlockEdges(here, 64).fault(true), nullptr);
}

TEST(Hardened, AnEdgeKeepsSizeAndAlignment) {
  for (size_t alignment = 16; alignment <= kSmallMax; alignment *= 2)
    for (size_t size : {size_t{0}, size_t{9}, BlockEdges::kMostSize}) {
      alignas(16) static char block[kSmallMax];
      memset(block, 0, sizeof block);
      BlockEdges edges(block, sizeof block);
      edges.write(size, alignment);
      EXPECT_EQ(edges.size(), size);
      EXPECT_EQ(edges.alignment(), alignment);
      EXPECT_EQ(edges.fault(true), nullptr);
      edges.clear();
      EXPECT_TRUE(is_zero(block, sizeof block));
    }
}

// ---- frees

TEST(Hardened, ASecondFreeIsFound) {
  for (size_t size : kSizes) {
    void* block = hm_malloc(size);
    hm_free(block);
    EXPECT_EXIT(hm_free(block), kAborted, kDoubleFree);
    EXPECT_EXIT(std::ignore = hm_realloc(block, 10), kAborted, kDoubleFree);
    EXPECT_EXIT(std::ignore = hm_usable_size(block), kAborted, kDoubleFree);
    EXPECT_EXIT(on_thread([=] { hm_free(block); }), kAborted, kDoubleFree);
  }
}

TEST(Hardened, ASecondFreeIsFoundBehindOthersAndAfterRequests) {
  for (size_t size : {16, 100, 1000}) {
    void* block = hm_malloc(size);
    std::vector<void*> others = allocate_many(100, size);
    hm_free(block);
    free_all(others);
    std::vector<void*> later = allocate_many(1000, size);
    EXPECT_EQ(std::count(later.begin(), later.end(), block), 0);
    EXPECT_EXIT(hm_free(block), kAborted, kDoubleFree);
    free_all(later);
  }
}

TEST(Hardened, OfTwoThreadsThatFreeABlockAtOnceOneIsFound) {
  for (int i = 0; i < 20; ++i) EXPECT_EXIT(free_twice_at_once(hm_malloc(100)), kAborted, kDoubleFree);
}

// The second free comes at each instruction of the first.
TEST(Hardened, OfTwoFreesOneTakesABlockBack) {
  if (!HM_STEPS) GTEST_SKIP() << "this machine does not trap after each instruction";
  BlockState state(BlockState::kTaken);
  bool first = false, second = false;
  Steps steps = fork_at_every_instruction([&] { first = state.take_back(); }, [&] { return first != second; },
                                          {.repair = [&] { return second = state.take_back(), true; }});
  EXPECT_GT(steps.forks, 3u);
  EXPECT_EQ(steps.failed, 0u);
}

TEST(Hardened, ASampledBlockIsFreedOnceAsAnyOther) {
  if (hm_profile_start(1) != 0) GTEST_SKIP() << "no stacks here";
  std::vector<void*> blocks = allocate_many(100, 100);
  bool sampled = false;
  for (void* block : blocks) sampled = sampled || find_block(block).state.is_sampled();
  EXPECT_TRUE(sampled);
  for (void* block : blocks) {
    EXPECT_EQ(hm_usable_size(block), 100u);
    memset(block, 1, 100);
    hm_free(block);
    EXPECT_TRUE(is_zero(block, 100));
  }
  EXPECT_EXIT(hm_free(blocks[0]), kAborted, kDoubleFree);
  hm_profile_stop();
}

TEST(Hardened, ASizedFreeNamesTheSizeOfTheRequest) {
  constexpr char kWrong[] = "freed with a size it was not allocated with";
  void* block = hm_malloc(100);
  for (size_t wrong : {1, 99, 101, 112, 200}) EXPECT_EXIT(hm_free_sized(block, wrong), kAborted, kWrong) << wrong;
  hm_free_sized(block, 100);
  void* shared = hm_shared_alloc(100);
  EXPECT_EQ(address_of(shared) % 64, 0u);
  EXPECT_EXIT(hm_shared_free_sized(shared, 128), kAborted, kWrong);
  hm_shared_free_sized(shared, 100);
  void* local = hm_local_alloc(50);
  EXPECT_EXIT(hm_local_free_sized(local, 51), kAborted, kWrong);
  local = hm_local_realloc(local, 60);
  hm_local_free_sized(local, 60);
  hm_free_sized(hm_realloc(hm_malloc(100), 90), 90);
  EXPECT_EQ(hm_cache_of(100), nullptr);
}

TEST(Hardened, ASizedFreeNamesTheAlignmentOfTheRequest) {
  constexpr char kWrong[] = "freed with an alignment it was not allocated with";
  void *aligned = hm_aligned_alloc(128, 100), *usual = hm_malloc(100);
  EXPECT_EXIT(hm_free_sized(aligned, 100), kAborted, kWrong);
  EXPECT_EXIT(hm_shared_free_sized(usual, 100), kAborted, kWrong);
  hm_free(aligned);
  hm_free_sized(usual, 100);
  hm_free_sized(hm_aligned_alloc(8, 100), 100);
}

TEST(Hardened, AFreeInsideOfABlockIsFound) {
  char* block = allocate(1000);
  for (ptrdiff_t at : {1, 16, 512, 1008}) EXPECT_EXIT(hm_free(block + at), kAborted, "hm_free") << at;
  hm_free(block);
}

// ---- hm_check

TEST(Hardened, ACheckCountsTheBlocksInUse) {
  size_t before = hm_check();
  std::vector<void*> blocks;
  for (size_t size : kSizes) blocks.push_back(hm_malloc(size));
  for (size_t size : {50'000, 500'000}) blocks.push_back(hm_malloc(size));
  EXPECT_EQ(hm_check(), before + blocks.size());
  free_all(blocks);
  EXPECT_EQ(hm_check(), before);
}

TEST(Hardened, ACheckFindsWhatWasWrittenAroundBlocksInUse) {
  for (size_t size : {size_t{1}, size_t{100}, size_t{4000}, size_t{32000}, size_t{40001}, size_t{300'001}}) {
    char* block = allocate(size);
    EXPECT_EXIT((write_to(block, static_cast<ptrdiff_t>(size), 'x'), hm_check()), kAborted,
                std::string("^hmalloc: hm_check\\(0x[0-9a-f]+\\): ") + kBehind)
        << size;
    hm_free(block);
  }
  char* block = allocate_behind_another(200);
  EXPECT_EXIT((write_to(block, -8, 'z'), hm_check()), kAborted, "^hmalloc: hm_check");
  hm_free(block);
}

TEST(Hardened, ACheckFindsWhatWasWrittenAfterTheFree) {
  for (size_t size : {100, 50'000}) {
    char* block = allocate(size);
    EXPECT_EXIT((hm_free(block), write_to(block, 9, 'x'), hm_check()), kAborted, kAfterFree) << size;
    hm_free(block);
  }
}

// Another thread is about to hand it out, or has begun to free it.
TEST(Hardened, ACheckSaysNothingOfABlockWhoseEdgeIsClear) {
  char* block = allocate(100);
  BlockEdges edges(block, capacity_of(block));
  edges.clear();
  hm_check();
  edges.write(100, kGranule);
  hm_free(block);
}

// A block that is written at this moment is not wrong.
TEST(Hardened, OtherThreadsMayGoOnDuringACheck) {
  std::atomic<unsigned> at_work{3};
  on_threads(4, [&](unsigned thread) {
    if (thread == 0) {
      while (at_work > 0) hm_check();
      return;
    }
    for (size_t i = 0; i < 30'000; ++i) {
      size_t size = 1 + i * 7 % 100;
      char* block = allocate(size);
      fill(block, size, thread);
      for (size_t next : {size, size + 1, size}) block = static_cast<char*>(hm_realloc(block, next));
      EXPECT_TRUE(matches(block, size, thread));
      hm_free(block);
      if (i % 100 == 0) hm_free(hm_malloc(40'000 + size));
    }
    --at_work;
  });
}

// ---- what is freed

TEST(Hardened, AFreedBlockReadsAsZeroAtOnce) {
  for (size_t size : kSizes) {
    char* block = allocate(size);
    size_t capacity = capacity_of(block);
    memset(block, 0x77, size);
    hm_free(block);
    EXPECT_TRUE(is_zero(block, capacity)) << size;
  }
}

TEST(Hardened, AWriteAfterTheFreeIsFoundWhenTheBlockServesAgain) {
  for (size_t size : {16, 100, 1000, 20000}) {
    char* block = allocate(size);
    EXPECT_EXIT((hm_free(block), write_to(block, 9, 'x'), age(size, 3000)), kAborted, kAfterFree) << size;
    hm_free(block);
  }
}

TEST(Hardened, AWriteIntoABlockThatNobodyHasIsFoundWhenItIsHandedOut) {
  char* block = allocate(100);
  hm_free(block);
  hm_collect();  // it has left the quarantine
  EXPECT_EXIT((write_to(block, 100, 'x'), std::ignore = allocate_many(1000, 100)), kAborted, kAfterFree);
}

TEST(Hardened, AWriteAfterTheFreeIsFoundAtTheEndOfTheProcess) {
  char* block = allocate(100);
  EXPECT_EXIT((hm_free(block), write_to(block, 0, 'x'), exit(0)), kAborted, kAfterFree);
  EXPECT_EXIT((hm_free(block), exit(0)), testing::ExitedWithCode(0), "");
}

TEST(Hardened, AWriteAfterTheFreeIsFoundWhenAllGoesBack) {
  char* block = allocate(100);
  EXPECT_EXIT((hm_free(block), write_to(block, 0, 'x'), hm_collect()), kAborted, kAfterFree);
}

TEST(Hardened, ABlockServesAgainAfterManyOthersWereFreed) {
  for (size_t size : {size_t{16}, size_t{100}, size_t{400}}) {
    std::map<void*, size_t> freed;
    size_t shortest = SIZE_MAX, longest = 0;
    for (size_t i = 1; i < 20000; ++i) {
      void* block = hm_malloc(size);
      if (auto before = freed.find(block); before != freed.end()) {
        shortest = std::min(shortest, i - before->second);
        longest = std::max(longest, i - before->second);
      }
      freed[block] = i;
      hm_free(block);
    }
    EXPECT_GT(shortest, Quarantine::kQueue) << size;
    EXPECT_GT(longest, shortest + Quarantine::kPlaces) << "nobody knows when";
  }
}

TEST(Hardened, ALargerBlockDoesNotServeNextEither) {
  for (int i = 0; i < 500; ++i) {
    void* block = hm_malloc(30'000);
    hm_free(block);
    void* next = hm_malloc(30'000);
    EXPECT_NE(next, block);
    hm_free(next);
  }
}

TEST(Hardened, WhatWaitsIsBounded) {
  for (size_t size : {100, 1000, 30000}) {
    size_t bytes = 0;
    free_all(allocate_many(2000, size));
    while (void* block = my_thread_heap().quarantine().take()) {
      bytes += capacity_of(block);
      find_block(block).state.mark_taken();
    }
    EXPECT_GT(bytes, options.quarantine_bytes / 8) << size;
    EXPECT_LE(bytes, options.quarantine_bytes) << size;
  }
}

TEST(Hardened, HowMuchWaitsIsAnOption) {
  options.thaw();
  options.quarantine_bytes = 0;
  free_all(allocate_many(100, 1000));
  EXPECT_EQ(waiting_in(my_thread_heap()), 1u) << "one waits in any case";
  options.quarantine_bytes = 10 * 1024;
  free_all(allocate_many(100, 1000));
  EXPECT_EQ(waiting_in(my_thread_heap()), 10u);
}

TEST(Hardened, NothingWaitsInAHeapThatWasNotUsedForARound) {
  options.thaw();
  options.decay_ms = 4;  // a round of a heap is 1 ms
  age(100, 300);
  ThreadHeap& heap = my_thread_heap();
  auto round_passes = [&] {
    for (uint64_t until = os::now_ms() + 3; os::now_ms() < until;) {}
    return heap.act_on_tick().round;
  };
  EXPECT_TRUE(round_passes());
  hm_free(hm_malloc(100));
  EXPECT_TRUE(round_passes());
  EXPECT_TRUE(round_passes());
  EXPECT_EQ(waiting_in(heap), 0u);
  age(100, 300);
  EXPECT_TRUE(round_passes());
  EXPECT_EQ(waiting_in(heap), 300u) << "those were freed in this round";
}

TEST(Hardened, AThreadWhoseHeapIsGoneFreesAllTheSame) {
  static pthread_key_t key;
  static void* block = nullptr;
  pthread_key_create(&key, [](void* left) {
    if (!thread_has_ended()) {
      pthread_setspecific(key, left);  // once more, after the others
      return;
    }
    memset(left, 1, 100);
    hm_free(left);
    block = left;
  });
  on_thread([] { pthread_setspecific(key, hm_malloc(100)); });
  ASSERT_NE(block, nullptr);
  EXPECT_TRUE(is_zero(block, capacity_of(block)));
  EXPECT_EXIT(hm_free(block), kAborted, kDoubleFree);
}

TEST(Hardened, AChildOfAForkGoesOn) {
  char* block = allocate(100);
  fill(block, 100, 3);
  age(100, 700);
  EXPECT_TRUE(child_succeeds([=] {
    bool same = matches(block, 100, 3);
    hm_free(block);
    age(100, 2000);
    return same && hm_usable_size(hm_malloc(50'000)) == 50'000;
  }));
  hm_free(block);
}

// ---- realloc

TEST(Hardened, AResizedBlockKeepsItsBytesAndNothingElse) {
  std::mt19937 random(kSeed);
  size_t size = 100;
  char* block = allocate(size);
  fill(block, size, 7);
  for (int i = 0; i < 3000; ++i) {
    size_t next = random() % (i % 10 == 0 ? 100'000 : 2000) + 1;
    block = static_cast<char*>(hm_realloc(block, next));
    EXPECT_TRUE(matches(block, std::min(size, next), 7));
    EXPECT_TRUE(next <= size || is_zero(block + size, next - size));
    EXPECT_EQ(hm_usable_size(block), next);
    fill(block, size = next, 7);
  }
  EXPECT_EQ(hm_realloc(block, 0), nullptr);
  EXPECT_EXIT(hm_free(block), kAborted, kDoubleFree);
}

TEST(Hardened, ABlockStaysWhereItIsIfItFits) {
  char* block = allocate(1000);
  EXPECT_EQ(hm_realloc(block, 1010), block);
  EXPECT_EQ(hm_realloc(block, 600), block);
  EXPECT_EXIT((write_to(block, 600, 'x'), hm_free(block)), kAborted, kBehind);
  EXPECT_NE(hm_realloc(block, 300), block);
}

// ---- its parts

TEST(Quarantine, TheQueueIsAQueueBehindRandomPlaces) {
  auto& quarantine = my_thread_heap().quarantine();
  std::vector<void*> blocks = allocate_many(1000, 100), out;
  for (void* block : blocks) {
    while (quarantine.is_full_for(capacity_of(block))) out.push_back(quarantine.take());
    quarantine.put(block, capacity_of(block));
  }
  EXPECT_GT(out.size(), 1000 - Quarantine::kPlaces - Quarantine::kQueue - 1);
  std::vector<void*> first(blocks.begin(), blocks.begin() + static_cast<ptrdiff_t>(out.size()));
  EXPECT_NE(out, first);
}

// A signal handler may call exit() in the middle of a free, and the quarantine is looked at then.
TEST(Quarantine, IsWholeAtEveryInstruction) {
  if (!HM_STEPS) GTEST_SKIP() << "this machine does not trap after each instruction";
  auto& quarantine = my_thread_heap().quarantine();
  std::vector<void*> blocks = allocate_many(2000, 100);
  for (void* block : blocks) BlockEdges(block, capacity_of(block)).clear();
  for (size_t i = 0; i < 1000; ++i) {
    while (quarantine.is_full_for(112)) memset(quarantine.take(), 1, 100);  // it serves again: an entry of it is stale
    quarantine.put(blocks[i], 112);
  }
  auto is_whole = [&] { return quarantine.check(), true; };
  size_t next = 1000;
  auto take_and_put = [&] {
    void* taken = quarantine.take();
    memset(taken, 1, 100);
    quarantine.put(blocks[next], 112);
  };
  for (; next < 1003; ++next) {
    Steps steps = fork_at_every_instruction(take_and_put, [] { return true; }, {.repair = is_whole});
    EXPECT_GT(steps.forks, 20u);
    EXPECT_EQ(steps.failed, 0u);
  }
}

TEST(Secret, RandomNumbersDifferFromThreadToThread) {
  std::set<uint64_t> seen;
  for (int i = 0; i < 50; ++i) on_thread([&] { seen.insert({next_random(), next_random()}); });
  EXPECT_EQ(seen.size(), 100u);
}

TEST(Secret, EachProcessHasAKey) {
  EXPECT_NE(secret.key(), 0u);
  EXPECT_EQ(secret.key(), secret.key());
  EXPECT_NE(secret.sum(16, 1), secret.sum(32, 1));
  EXPECT_NE(secret.sum(16, 1), secret.sum(16, 2));
}

#include "threads/thread_heap.h"

#include <chrono>
#include <cstdlib>
#include <set>
#include <thread>

#include "api/allocator.h"
#include "base/clock.h"
#include "base/os_pages.h"
#include "pages/options.h"
#include "support.h"

using namespace hm;
using test::all_classes;
using test::on_thread;

namespace {

constexpr size_t kGroup = 64;

std::vector<void*> allocate_many(ClassIndex c, size_t n) {
  std::vector<void*> blocks;
  for (size_t i = 0; i < n; ++i) blocks.push_back(allocate(size_of(c)));
  return blocks;
}
void free_all(const std::vector<void*>& blocks) {
  for (void* block : blocks) deallocate(block, "test");
}
size_t entries(ClassIndex c) { return my_heap()->caches[index_of(c)].size(); }
size_t limit(ClassIndex c) { return my_heap()->classes[index_of(c)].tuner.capacity(); }
size_t cached_bytes() {
  size_t bytes = 0;
  for (ClassIndex c : all_classes()) bytes += entries(c) * size_of(c);
  return bytes;
}

}  // namespace

TEST(ThreadHeap, LiesBetweenGuards) {
  on_thread([] {
    hm_free(hm_malloc(1));
    uintptr_t heap = address_of(&my_thread_heap()), end = heap;
    EXPECT_TRUE(test::is_guard(heap - os::page_size()));
    while (!test::accessible_bytes(end, end + os::page_size()).empty()) end += os::page_size();
    EXPECT_TRUE(test::is_guard(end));
  });
}

TEST(ThreadHeap, AThreadThatOnlyFreesGetsNone) {
  void* block = allocate(64);
  on_thread([=] {
    deallocate(block, "test");
    EXPECT_FALSE(have_heap());
  });
  EXPECT_EQ(test::allocated_after_collect(), 0u);
}

TEST(ThreadHeap, ServesWhatWasFreedLast) {
  for (ClassIndex c : all_classes()) {
    auto blocks = allocate_many(c, 2);
    while (entries(c) > 0) blocks.push_back(allocate(size_of(c)));
    deallocate(blocks[0], "test");
    deallocate(blocks[1], "test");
    EXPECT_EQ(allocate(size_of(c)), blocks[1]);
    EXPECT_EQ(allocate(size_of(c)), blocks[0]);
    free_all(blocks);
  }
}

// One block of each class, freed again, and nothing is lost: the first refill may be larger than the first limit.
TEST(ThreadHeap, AFreeNeverLosesABlock) {
  for (ClassIndex c : all_classes()) {
    for (size_t n : {1, 2, 3, 40}) free_all(allocate_many(c, n));
    EXPECT_EQ(test::allocated_after_collect(), 0u) << size_of(c);
  }
}

TEST(ThreadHeap, CachesAreBoundedInEntriesAndBytes) {
  on_thread([] {
    for (int round = 0; round < 6; ++round)
      for (ClassIndex c : all_classes()) {
        free_all(allocate_many(c, 3000 * 64 / (size_of(c) + 63)));
        EXPECT_LE(limit(c), options.cache_blocks);
        EXPECT_LE(entries(c), std::max(limit(c), 2 * kGroup));
      }
    EXPECT_LE(my_heap()->capacity_bytes, options.cache_bytes);
    EXPECT_LE(cached_bytes(), options.cache_bytes + kClasses * kGroup * kKiB);
    EXPECT_TRUE(my_heap()->is_valid());
  });
  EXPECT_EQ(test::allocated_after_collect(), 0u);
}

// Ticks come with the slow operations of one class; another that hits its cache all the time has none, and is not idle.
TEST(ThreadHeap, ACacheThatMovesIsNotIdle) {
  on_thread([] {
    ClassIndex moving = class_of(64), resting = class_of(128), slow = class_of(4096);
    free_all(allocate_many(moving, 100));
    free_all(allocate_many(resting, 100));
    std::vector<void*> held;
    for (int i = 0; i < 50; ++i) {
      held.push_back(allocate(64));
      free_all(allocate_many(slow, 128 + 350));  // most of a tick
      ASSERT_GT(limit(moving), 0u) << i;
    }
    EXPECT_EQ(limit(resting), 0u);
    EXPECT_EQ(entries(resting), 0u);
    free_all(held);
  });
}

TEST(ThreadHeap, LimitBytesIsTheSumOfTheLimits) {
  on_thread([] {
    for (ClassIndex c : all_classes()) free_all(allocate_many(c, 500));
    size_t sum = 0;
    for (ClassIndex c : all_classes()) sum += std::max(limit(c), ThreadHeap::first_capacity(c)) * size_of(c);
    EXPECT_EQ(my_heap()->capacity_bytes, sum);
  });
}

TEST(ThreadHeap, ACacheThatProvesTooSmallGrows) {
  on_thread([] {
    ClassIndex c = class_of(64);
    free_all(allocate_many(c, 1));
    size_t before = limit(c);
    for (int round = 0; round < 8; ++round) free_all(allocate_many(c, 1000));
    EXPECT_GT(limit(c), before);
    EXPECT_GE(entries(c), 1000u) << "batches of 1000 are served from the cache in the end";
  });
}

// Batches a little larger than the limit: each costs one refill, and they do not fit for ever.
TEST(ThreadHeap, ACacheThatIsTightGrows) {
  on_thread([] {
    ClassIndex c = class_of(64);
    free_all(allocate_many(c, 1));
    size_t before = limit(c);
    auto refills = [] { return my_heap()->refills.get(); };
    for (int round = 0; round < 40; ++round) free_all(allocate_many(c, before + before / 8));
    EXPECT_GT(limit(c), before);
    EXPECT_LE(limit(c), 2 * before);
    uint64_t settled = refills();
    for (int round = 0; round < 40; ++round) free_all(allocate_many(c, before + before / 8));
    EXPECT_EQ(refills(), settled);
    EXPECT_TRUE(my_heap()->is_valid());
  });
}

// A cache that is too small now and then costs nothing: a server of many hours keeps small caches.
TEST(ThreadHeap, ACacheThatIsSeldomTightStaysAsItIs) {
  options.decay_ms = 4;
  on_thread([] {
    ClassIndex c = class_of(64), slow = class_of(4096);
    free_all(allocate_many(c, 1));
    size_t before = limit(c);
    for (int round = 0; round < 40; ++round) {
      free_all(allocate_many(c, before + before / 8));
      EXPECT_LE(limit(c), before);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      free_all(allocate_many(slow, 128 + 350));  // most of a tick, which begins another round
    }
  });
  EXPECT_EQ(test::allocated_after_collect(), 0u);
}

// Blocks that lie in a large cache at every tick of a round are not needed there.
TEST(ThreadHeap, WhatNobodyNeedsLeavesTheCache) {
  options.decay_ms = 40;
  on_thread([] {
    ClassIndex c = class_of(64), slow = class_of(4096);
    for (int round = 0; round < 8; ++round) free_all(allocate_many(c, 1000));
    size_t grown = limit(c), rounds = 0;
    EXPECT_GE(entries(c), 1000u);
    uint64_t started = os::now_ms();
    std::vector<void*> held;
    for (; limit(c) > grown / 2 && os::now_ms() - started < 10'000; ++rounds) {
      held.push_back(allocate(64));  // in use, a little
      if (held.size() == 100) free_all(held), held.clear();
      free_all(allocate_many(slow, 128 + 350));
    }
    EXPECT_LE(limit(c), grown / 2);
    EXPECT_GT(limit(c), 0u);
    EXPECT_LE(entries(c), limit(c));
    EXPECT_TRUE(my_heap()->is_valid());
    free_all(held);
  });
  EXPECT_EQ(test::allocated_after_collect(), 0u);
}

// The slots of caches that have not grown lie together; one that grows moves, with all that is in it.
TEST(ThreadHeap, ACacheThatGrowsMoves) {
  on_thread([] {
    ClassIndex c = class_of(64);
    free_all(allocate_many(c, 100));
    void** before = my_heap()->caches[index_of(c)].bottom();
    for (int round = 0; round < 8; ++round) free_all(allocate_many(c, 1000));
    EXPECT_NE(my_heap()->caches[index_of(c)].bottom(), before);
    EXPECT_EQ(my_heap()->cached_blocks(index_of(c)), entries(c));
    EXPECT_TRUE(my_heap()->is_valid());
    EXPECT_LE(address_of(my_heap()->caches[index_of(c)].bottom()) - address_of(before), 1u << 20);
  });
  EXPECT_EQ(test::allocated_after_collect(), 0u);
}

// Threads that use a handful of a class share a superblock; who needs a second handful keeps one.
TEST(ThreadHeap, FirstHandfulsShareASuperblock) {
  ClassIndex c = class_of(64);
  std::vector<void*> held;
  std::set<Superblock*> superblocks;
  for (int i = 0; i < 4; ++i) {
    void* block = nullptr;
    on_thread([&] {
      block = allocate(64);
      EXPECT_EQ(my_heap()->classes[index_of(c)].current, nullptr);
      auto more = allocate_many(c, 2 * kGroup);  // a handful may be almost two groups
      EXPECT_NE(my_heap()->classes[index_of(c)].current, nullptr);
      my_thread_heap().drain();
      free_all(more);
    });
    superblocks.insert(&find_block(block).sb);
    held.push_back(block);
  }
  EXPECT_EQ(superblocks.size(), 1u);
  free_all(held);
  EXPECT_EQ(test::allocated_after_collect(), 0u);
}

TEST(ThreadHeap, OwnBlocksBeyondTheLimitAreFreeAtOnce) {
  on_thread([] {
    ClassIndex c = class_of(1024);
    auto blocks = allocate_many(c, 4000);
    free_all(blocks);
    size_t taken = 0;
    for (void* block : blocks) taken += !find_block(block).state.is_free();
    EXPECT_EQ(taken, entries(c));
  });
}

// Foreign blocks: half a full cache goes back in one burst, and is counted.
TEST(ThreadHeap, ForeignBlocksAreFlushedAndCounted) {
  ClassIndex c = class_of(64);
  auto blocks = allocate_many(c, 4000);
  on_thread([&] {
    free_all(allocate_many(c, 1));
    free_all(blocks);
    EXPECT_GT(my_heap()->flushes.get(), 0u);
    EXPECT_GT(my_heap()->cross_thread_frees.get(), 2000u);
    EXPECT_LE(my_heap()->cross_thread_frees.get(), 4000u);
    EXPECT_LE(entries(c), std::max(limit(c), 2 * kGroup));
    EXPECT_TRUE(my_heap()->is_valid());
  });
  EXPECT_EQ(test::allocated_after_collect(), 0u);
}

TEST(ThreadHeap, FreedMemoryIsFoundAgainByAnotherThread) {
  ClassIndex c = class_of(512);
  for (int round = 0; round < 20; ++round) {
    std::vector<void*> blocks;
    on_thread([&] { blocks = allocate_many(c, 4000); });
    on_thread([&] { free_all(blocks); });
  }
  EXPECT_LE(slice_pool.chunks() * kChunk, 16 * kMiB) << "2 MB live at a time, twenty times";
  EXPECT_EQ(test::allocated_after_collect(), 0u);
}

// Who allocates and frees nothing stops looking for room among what is full; who finds some looks as often as ever.
TEST(ThreadHeap, LooksInVainBecomeFewer) {
  on_thread([] {
    ClassIndex c = class_of(512);
    auto blocks = allocate_many(c, 64 * 200);
    EXPECT_EQ(my_heap()->classes[index_of(c)].probes, 1);
    std::vector<void*> kept;  // one in each superblock, or these would go back as they become free
    for (void*& block : blocks)
      if (address_of(block) % kSlice < 512) kept.push_back(std::exchange(block, nullptr));
    std::erase(blocks, nullptr);
    free_all(blocks);
    for (void*& block : blocks) block = allocate(512);
    EXPECT_GT(my_heap()->classes[index_of(c)].probes, 1);
    free_all(blocks);
    free_all(kept);
  });
}

// A class whose blocks all go to other threads keeps several superblocks: nearly free ones of the pool before new ones.
TEST(ThreadHeap, AStreamTakesWhatIsNearlyFree) {
  on_thread([] {
    ClassIndex c = class_of(512);
    auto held = allocate_many(c, 1);  // the class is in use
    auto pooled = [&](size_t taken) -> Superblock& {
      Superblock& sb = test::fresh_superblock(c);
      for (size_t i = 0; i < taken; ++i) sb.states[i].mark_taken();
      sb.set_owner(&my_heap()->shelf);  // its shard
      superblock_pool.push(sb);
      return sb;
    };
    Superblock &half = pooled(blocks_of(c) / 2), &nearly = pooled(blocks_of(c) / 16);
    my_heap()->classes[index_of(c)].tuner.on_refill(8192);
    std::vector<Superblock*> order{&find_block(held[0]).sb};
    while (order.size() < 3) {
      held.push_back(allocate(512));
      Superblock& sb = find_block(held.back()).sb;
      if (&sb != order.back()) order.push_back(&sb);
    }
    EXPECT_EQ(order[1], &nearly);
    EXPECT_NE(order[2], &half) << "it would soon be used up";
    free_all(held);
    for (Superblock* sb : {&half, &nearly})
      for (size_t i = 0; i < blocks_of(c); ++i) sb->states[i].give_back();
    my_thread_heap().drain();
    EXPECT_EQ(test::allocated_after_collect(), 0u);
  });
}

// The slots of a class that a thread has not asked for are no page of memory.
TEST(ThreadHeap, ACacheOpensWithTheFirstRefill) {
  void* foreign = allocate(100);
  on_thread([=] {
    deallocate(allocate(16), "test");  // a heap
    ClassIndex c = class_of(100);
    EXPECT_EQ(limit(c), 0u);
    EXPECT_EQ(my_heap()->cached_blocks(index_of(c)), 0u);
    deallocate(foreign, "test");
    EXPECT_EQ(entries(c), 0u) << "straight to FREE";
    EXPECT_EQ(my_heap()->caches[index_of(c)].bottom(), empty_heap.caches[index_of(c)].bottom());
    deallocate(allocate(100), "test");
    EXPECT_GT(limit(c), 0u);
    EXPECT_EQ(my_heap()->cached_blocks(index_of(c)), entries(c));
    EXPECT_GT(entries(c), 0u);
  });
  EXPECT_EQ(test::allocated_after_collect(), 0u);
}

TEST(ThreadHeap, DrainLeavesNothing) {
  on_thread([] {
    for (ClassIndex c : all_classes()) free_all(allocate_many(c, 200));
    my_thread_heap().drain();
    EXPECT_EQ(cached_bytes(), 0u);
    for (ClassIndex c : all_classes()) {
      EXPECT_EQ(my_heap()->classes[index_of(c)].current, nullptr);
      EXPECT_EQ(my_heap()->full(c).count(), 0u);
    }
    EXPECT_TRUE(my_heap()->is_valid());
    free_all(allocate_many(class_of(100), 300));  // and goes on after it
    EXPECT_TRUE(my_heap()->is_valid());
  });
}

TEST(ThreadHeap, IsValidSeesDamage) {
  on_thread([] {
    ClassIndex c = class_of(64);
    free_all(allocate_many(c, 10));
    EXPECT_TRUE(my_heap()->is_valid());
    BlockState& state = find_block(my_heap()->caches[index_of(c)].top_block()).state;
    state.give_back();  // a cached block that somebody else believes free
    EXPECT_FALSE(my_heap()->is_valid());
    kChecked ? state.mark_cached() : state.mark_taken();
    EXPECT_TRUE(my_heap()->is_valid());
  });
}

// Local blocks that another thread frees, and local memory that outlives its thread.
#include "local/local_heap.h"
#include "support.h"
#include "threads/registry.h"

using namespace hm;
using test::on_thread;

namespace {

bool valid() { return my_thread_heap().local.is_valid(); }
uint8_t size_byte(void* block) {
  return LocalChunk::of(address_of(block)).sizes[address_of(block) % kChunk / kGranule].load();
}
std::vector<void*> allocate_many(size_t n, size_t size) {
  std::vector<void*> blocks;
  for (size_t i = 0; i < n; ++i) blocks.push_back(hm_local_alloc(size));
  return blocks;
}
void free_elsewhere(const std::vector<void*>& blocks) {
  on_thread([&] {
    for (void* block : blocks) hm_local_free(block);
  });
}
// All blocks are distinct and do not overlap; sizes are multiples of 16.
void expect_disjoint(std::vector<void*> blocks, size_t size) {
  std::sort(blocks.begin(), blocks.end());
  for (size_t i = 1; i < blocks.size(); ++i)
    ASSERT_GE(address_of(blocks[i]) - address_of(blocks[i - 1]), size) << "two live blocks overlap";
}

}  // namespace

TEST(LocalRemote, ARemoteFreeIsNotedAndCountedLater) {
  on_thread([] {
    void* block = hm_local_alloc(100);
    free_elsewhere({block});
    EXPECT_EQ(size_byte(block), kRemoteFreed);
    EXPECT_TRUE(valid()) << "not counted yet: still one of allocated";
    LocalChunk& chunk = LocalChunk::of(address_of(block));
    my_thread_heap().local.count_remote_frees(chunk, address_of(block) % kChunk / kUnit);
    EXPECT_EQ(size_byte(block), 0);
    EXPECT_TRUE(valid());
  });
}

TEST(LocalRemote, CountedOnce) {
  on_thread([] {
    auto blocks = allocate_many(20, 100);
    free_elsewhere({blocks.begin(), blocks.begin() + 10});
    LocalChunk& chunk = LocalChunk::of(address_of(blocks[0]));
    size_t unit = address_of(blocks[0]) % kChunk / kUnit;
    for (int i = 0; i < 3; ++i) {
      chunk.remote[unit].store(1);  // as if set late
      my_thread_heap().local.count_remote_frees(chunk, unit);
      EXPECT_TRUE(valid());
      EXPECT_EQ(chunk.units[unit].freed, 10u);
    }
    for (size_t i = 10; i < 20; ++i) hm_local_free(blocks[i]);
    EXPECT_EQ(chunk.units[unit].allocated, 0u) << "coalesced";
  });
}

TEST(LocalRemote, MemoryFreedElsewhereServesAgain) {
  on_thread([] {
    for (int round = 0; round < 40; ++round) free_elsewhere(allocate_many(3000, 1000));
    size_t n = 0;
    for (LocalChunk* chunk = my_thread_heap().local.chunks(); chunk != nullptr; chunk = chunk->next) ++n;
    EXPECT_LE(n * kChunk, 12 * kMiB) << "3 MB live at a time";
    EXPECT_TRUE(valid());
  });
}

TEST(LocalRemote, EveryEntryPointRoutesIt) {
  on_thread([] {
    auto blocks = allocate_many(5, 64);
    on_thread([&] {
      hm_local_free(blocks[0]);
      hm_free(blocks[1]);
      hm_shared_free(blocks[2]);
      EXPECT_EQ(hm_realloc(blocks[3], 0), nullptr);
      void* moved = hm_realloc(blocks[4], 500);
      hm_free(moved);
    });
    for (void* block : blocks) EXPECT_EQ(size_byte(block), kRemoteFreed);
  });
}

TEST(LocalRemote, BlocksOutliveTheirThread) {
  std::vector<void*> blocks;
  on_thread([&] {
    blocks = allocate_many(300, 500);
    for (void* block : blocks) test::fill(block, 500, 11);
  });
  for (void* block : blocks) EXPECT_TRUE(test::matches(block, 500, 11));
  for (void* block : blocks) hm_local_free(block);
  EXPECT_TRUE(registry.is_valid());
}

TEST(LocalRemote, TheSuccessorGoesOnWhereTheThreadStopped) {
  void* block = nullptr;
  on_thread([&] { block = hm_local_alloc(100); });
  on_thread([&] {
    EXPECT_EQ(hm_local_alloc(100), nullptr == block ? nullptr : static_cast<char*>(block) + 112);
    hm_local_free(block);  // now its own
    EXPECT_EQ(size_byte(block), 0);
    EXPECT_TRUE(valid());
  });
}

// A dead heap's current unit is emptied by others and noticed by hm_collect: its successor must not find the unit both
// current and empty, or two live blocks share the same bytes.
TEST(LocalRemote, ADrainedHeapsCurrentUnitIsNotHandedOutTwice) {
  std::vector<void*> first;
  on_thread([&] { first = allocate_many(100, 256); });
  for (void* block : first) hm_local_free(block);
  hm_collect();
  EXPECT_TRUE(registry.is_valid());
  on_thread([&] {
    auto second = allocate_many(600, 256);  // the rest of the unit, and more than two after it
    expect_disjoint(second, 256);
    EXPECT_TRUE(valid());
    for (void* block : second) hm_local_free(block);
    EXPECT_TRUE(valid());
  });
}

TEST(LocalRemote, CollectWhileADeadHeapHasLiveBlocks) {
  std::vector<void*> blocks;
  on_thread([&] { blocks = allocate_many(1000, 256); });
  for (size_t i = 0; i < blocks.size(); i += 2) hm_local_free(blocks[i]);
  for (size_t i = 1; i < blocks.size(); i += 2) test::fill(blocks[i], 256, static_cast<unsigned>(i));
  hm_collect();
  EXPECT_TRUE(registry.is_valid());
  for (size_t i = 1; i < blocks.size(); i += 2) EXPECT_TRUE(test::matches(blocks[i], 256, static_cast<unsigned>(i)));
  for (size_t i = 1; i < blocks.size(); i += 2) hm_local_free(blocks[i]);
}

TEST(LocalRemote, ProducerAndConsumerKeepContents) {
  constexpr size_t kRing = 512, kMessages = 60000;
  static std::array<std::atomic<void*>, kRing> ring{};
  std::thread producer([] {
    for (size_t i = 0; i < kMessages; ++i) {
      size_t size = i * 37 % 700 + 16;
      void* block = hm_local_alloc(size);
      memcpy(block, &size, sizeof size);
      test::fill(static_cast<char*>(block) + 8, size - 8, static_cast<unsigned>(size));
      while (ring[i % kRing].load(std::memory_order_acquire) != nullptr) std::this_thread::yield();
      ring[i % kRing].store(block, std::memory_order_release);
    }
    EXPECT_TRUE(valid());
  });
  for (size_t i = 0; i < kMessages; ++i) {
    void* block;
    while ((block = ring[i % kRing].exchange(nullptr, std::memory_order_acq_rel)) == nullptr) std::this_thread::yield();
    size_t size;
    memcpy(&size, block, sizeof size);
    ASSERT_TRUE(test::matches(static_cast<char*>(block) + 8, size - 8, static_cast<unsigned>(size)));
    hm_local_free(block);
  }
  producer.join();
}

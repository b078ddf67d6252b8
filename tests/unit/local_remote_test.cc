// Local blocks that another thread frees, and local memory that outlives its thread.
#include <algorithm>

#include "local.h"

using namespace hm;
using namespace hm::test;

namespace {

using LocalRemote = NothingIsLost;

uint8_t size_byte(void* block) { return chunk_of(block).sizes[address_of(block) % kChunk / kGranule].load(); }
void free_elsewhere(const std::vector<void*>& blocks) {
  on_thread([&] { free_local(blocks); });
}
std::vector<void*> allocate_elsewhere(size_t n, size_t size) {
  std::vector<void*> blocks;
  on_thread([&] { blocks = allocate_local(n, size); });
  return blocks;
}

}  // namespace

TEST_F(LocalRemote, ARemoteFreeIsNotedAndCountedLater) {
  void* block = hm_local_alloc(100);
  free_elsewhere({block});
  EXPECT_EQ(size_byte(block), kRemoteFreed);
  EXPECT_TRUE(everything_is_valid()) << "not counted yet: still one of allocated";
  my_local_heap().count_remote_frees(chunk_of(block), unit_of(block));
  EXPECT_EQ(size_byte(block), 0);
}

TEST_F(LocalRemote, CountedOnce) {
  auto blocks = allocate_local(20, 100);
  free_elsewhere({blocks.begin(), blocks.begin() + 10});
  for (int i = 0; i < 3; ++i) {
    chunk_of(blocks[0]).remote[unit_of(blocks[0])].store(1);  // as if set late
    my_local_heap().count_remote_frees(chunk_of(blocks[0]), unit_of(blocks[0]));
    EXPECT_TRUE(everything_is_valid());
    EXPECT_EQ(counts_of(blocks[0]).freed, 10u);
  }
  free_local({blocks.begin() + 10, blocks.end()});
  EXPECT_EQ(counts_of(blocks[0]).allocated, 0u) << "coalesced";
}

TEST_F(LocalRemote, MemoryFreedElsewhereServesAgain) {
  for (int round = 0; round < 40; ++round) free_elsewhere(allocate_local(3000, 1000));
  EXPECT_LE(local_chunks() * kChunk, 12 * kMiB) << "3 MB live at a time";
}

TEST_F(LocalRemote, EveryEntryPointRoutesIt) {
  auto blocks = allocate_local(5, 64);
  on_thread([&] {
    hm_local_free(blocks[0]);
    hm_free(blocks[1]);
    hm_shared_free(blocks[2]);
    EXPECT_EQ(hm_realloc(blocks[3], 0), nullptr);
    hm_free(hm_realloc(blocks[4], 500));
  });
  for (void* block : blocks) EXPECT_EQ(size_byte(block), kRemoteFreed);
}

TEST_F(LocalRemote, TheSuccessorGoesOnWhereTheThreadStopped) {
  void* block = allocate_elsewhere(1, 100)[0];
  on_thread([=] {
    void* next = hm_local_alloc(100);
    EXPECT_EQ(next, static_cast<char*>(block) + 112);
    hm_local_free(block);  // now its own
    EXPECT_EQ(size_byte(block), 0);
    hm_local_free(next);
  });
}

// A dead heap's current unit is emptied by others and noticed by hm_collect: its successor must not find the unit both
// current and empty, or two live blocks share the same bytes.
TEST_F(LocalRemote, ADrainedHeapsCurrentUnitIsNotHandedOutTwice) {
  free_local(allocate_elsewhere(100, 256));
  hm_collect();
  EXPECT_TRUE(everything_is_valid());
  on_thread([] {
    auto blocks = allocate_local(600, 256);  // the rest of the unit, and more than two after it
    std::sort(blocks.begin(), blocks.end());
    for (size_t i = 1; i < blocks.size(); ++i) ASSERT_GE(address_of(blocks[i]) - address_of(blocks[i - 1]), 256u) << i;
    EXPECT_TRUE(everything_is_valid());
    free_local(blocks);
  });
}

TEST_F(LocalRemote, CollectLeavesADeadHeapsLiveBlocks) {
  auto blocks = allocate_elsewhere(1000, 256);
  for (size_t i = 0; i < blocks.size(); ++i) fill(blocks[i], 256, static_cast<unsigned>(i));
  for (size_t i = 0; i < blocks.size(); i += 2) hm_local_free(blocks[i]);
  hm_collect();
  EXPECT_TRUE(everything_is_valid());
  for (size_t i = 1; i < blocks.size(); i += 2) {
    EXPECT_TRUE(matches(blocks[i], 256, static_cast<unsigned>(i)));
    hm_local_free(blocks[i]);
  }
}

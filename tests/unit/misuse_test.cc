// Pointers into what manages the blocks, and past the last of a superblock.  All other misuse is in tests/misuse.
#include <csignal>

#include "support.h"

using namespace hm;

namespace {

auto aborted = testing::KilledBySignal(SIGABRT);

}  // namespace

TEST(Misuse, NeverAllocatedAndMetadata) {
  void* block = hm_malloc(64);
  uintptr_t region = align_down(address_of(block), kRegion);
  for (size_t offset : {size_t{0}, kDescriptors, kRegionHeader, kGranuleStates, kChunk - kSlice, kChunk, kRegion - kSlice})
    EXPECT_EXIT(hm_free(reinterpret_cast<void*>(region + offset)), aborted, "^hmalloc: hm_free") << offset;
  hm_free(block);
}

TEST(Misuse, TheUnusedEndOfASuperblock) {
  void* block = hm_malloc(48);
  uintptr_t end = align_down(address_of(block), kSlice) + blocks_of(class_of(48)) * 48;
  EXPECT_EXIT(hm_free(reinterpret_cast<void*>(end)), aborted, "^hmalloc: hm_free");
  hm_free(block);
}

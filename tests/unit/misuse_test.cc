// Pointers that are no live blocks end the program with one line.  One process per case.
#include <sys/mman.h>

#include <csignal>
#include <tuple>

#include "api/allocator.h"
#include "support.h"

using namespace hm;

namespace {

auto aborted = testing::KilledBySignal(SIGABRT);
alignas(64) char a_global[256];

constexpr const char* kDouble = "^hmalloc: hm_free\\(0x[0-9a-f]+\\): double free";
constexpr const char* kInterior = "points into a block, not to its start" HM_LAST_LINE;
constexpr const char* kForeign = "not a block of hmalloc" HM_LAST_LINE;
constexpr const char* kMisaligned = "misaligned pointer" HM_LAST_LINE;

char* at(void* block, size_t offset) { return static_cast<char*>(block) + offset; }

}  // namespace

TEST(Misuse, ImmediateDoubleFree) {
  for (size_t size : {16, 64, 1000, 8192}) {
    void* block = hm_malloc(size);
    hm_free(block);
    EXPECT_EXIT(hm_free(block), aborted, kDouble) << size;
  }
}

TEST(Misuse, ImmediateDoubleFreeOfMediumAndLarge) {
  for (size_t size : {size_t{20000}, size_t{100000}, 2 * kMiB}) {
    hm_free(hm_malloc(size));  // of a mapping, the second of a size is kept
    void* block = hm_malloc(size);
    hm_free(block);
    EXPECT_EXIT(hm_free(block), aborted, kDouble) << size;
  }
}

TEST(Misuse, DoubleFreeOfABlockThatHasBecomeFree) {
  void* block = hm_malloc(64);
  void* other = hm_malloc(64);
  test::on_thread([=] { hm_free(block); });  // a thread without a heap: straight to its state
  hm_free(other);
  EXPECT_EXIT(hm_free(block), aborted, kDouble);
}

// Where the machine has such addresses, a hint gets them; elsewhere the pointer is only made up.
TEST(Misuse, PointersBeyondTheAddressMap) {
  for (int bit = kAddressBits; bit < 63; ++bit) {
    void* hint = reinterpret_cast<void*>(uintptr_t{1} << bit);
    void* mapped = mmap(hint, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool high = mapped != MAP_FAILED && !AddressMap::covers(address_of(mapped), 4096);
    EXPECT_EXIT(hm_free(high ? mapped : hint), aborted, kForeign) << bit;
    EXPECT_EXIT(hm_free(reinterpret_cast<char*>(hint) + kChunk + 64), aborted, kForeign) << bit;
  }
}

TEST(Misuse, PointersFromElsewhere) {
  int on_stack[16] = {};
  void* mapped = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_EXIT(hm_free(on_stack), aborted, "hmalloc: hm_free");
  EXPECT_EXIT(hm_free(a_global), aborted, kForeign);
  EXPECT_EXIT(hm_free(mapped), aborted, kForeign);
  EXPECT_EXIT(hm_free(reinterpret_cast<void*>(16)), aborted, kForeign);
  EXPECT_EXIT(hm_free(reinterpret_cast<void*>(uintptr_t{0xdead} << 48)), aborted, kForeign);
  EXPECT_EXIT(hm_free(reinterpret_cast<void*>(~uintptr_t{15})), aborted, kForeign);
  EXPECT_EXIT(std::ignore = hm_realloc(a_global, 10), aborted, "^hmalloc: hm_realloc");
  EXPECT_EXIT((void)hm_usable_size(a_global), aborted, "^hmalloc: hm_usable_size");
  munmap(mapped, 4096);
}

TEST(Misuse, InteriorAndMisaligned) {
  for (size_t size : {size_t{64}, size_t{1000}, size_t{20000}, size_t{100000}, 2 * kMiB}) {
    void* block = hm_malloc(size);
    EXPECT_EXIT(hm_free(at(block, 16)), aborted, kInterior) << size;
    EXPECT_EXIT(hm_free(at(block, 8)), aborted, kMisaligned) << size;
    EXPECT_EXIT(hm_free(at(block, 1)), aborted, kMisaligned) << size;
    hm_free(block);
  }
}

TEST(Misuse, InsideALargeBlockAtSliceAndChunkBorders) {
  void* run = hm_malloc(5 * kSlice);
  EXPECT_EXIT(hm_free(at(run, 2 * kSlice)), aborted, kInterior);
  hm_free(run);
  void* huge = hm_malloc(20 * kMiB);
  EXPECT_EXIT(hm_free(at(huge, kChunk - kSlice)), aborted, "^hmalloc: hm_free");
  EXPECT_EXIT(hm_free(at(huge, 8 * kMiB)), aborted, "^hmalloc: hm_free");
  hm_free(huge);
}

TEST(Misuse, TwiceAlthoughItsMemoryIsKept) {
  for (size_t alignment : {size_t{16}, 2 * kSlice, kMiB}) {
    void* block = nullptr;
    for (int i = 0; i < 2; ++i) {  // what is asked for again is kept
      hm_free(block);
      block = hm_aligned_alloc(alignment, 5 * kMiB);
    }
    hm_free(block);
    EXPECT_EXIT(hm_free(block), aborted, "double free") << alignment;
    hm_collect();
  }
}

TEST(Misuse, NeverAllocatedAndMetadata) {
  void* block = hm_malloc(64);
  uintptr_t region = align_down(address_of(block), kRegion);
  for (size_t offset : {size_t{0}, kDescriptors, kRegionHeader, kGranuleStates, kChunk - kSlice, kChunk, kRegion - kSlice})
    EXPECT_EXIT(hm_free(reinterpret_cast<void*>(region + offset)), aborted, "^hmalloc: hm_free") << offset;
  EXPECT_EXIT(hm_free(at(block, 500 * 64)), aborted, "^hmalloc: hm_free");
  hm_free(block);
}

TEST(Misuse, TheUnusedEndOfASuperblock) {
  void* block = hm_malloc(48);
  uintptr_t end = align_down(address_of(block), kSlice) + blocks_of(class_of(48)) * 48;
  EXPECT_EXIT(hm_free(reinterpret_cast<void*>(end)), aborted, "^hmalloc: hm_free");
  hm_free(block);
}

TEST(Misuse, LocalBlocks) {
  void* block = hm_local_alloc(100);
  void* other = hm_local_alloc(100);
  EXPECT_EXIT(hm_local_free(at(block, 16)), aborted, "points into a block");
  EXPECT_EXIT(hm_local_free(at(block, 8)), aborted, kMisaligned);
  hm_local_free(block);
  EXPECT_EXIT(hm_local_free(block), aborted, "double free");
  EXPECT_EXIT(std::ignore = hm_local_realloc(block, 10), aborted, "not a live local block");
  test::on_thread([=] { hm_local_free(other); });
  EXPECT_EXIT(hm_local_free(other), aborted, "double free");
  EXPECT_EXIT(hm_local_free(a_global), aborted, "^hmalloc: hm_local_free.*not a block of hmalloc");
}

TEST(Misuse, FreedAndReallocated) {
  void* large = hm_malloc(100000);
  hm_free(large);
  EXPECT_EXIT(std::ignore = hm_realloc(large, 10), aborted, "^hmalloc: hm_realloc\\(0x[0-9a-f]+\\): double free");
}

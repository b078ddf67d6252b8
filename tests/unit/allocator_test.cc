#include "api/allocator.h"

#include <cerrno>

#include "large/runs.h"
#include "support.h"

using namespace hm;

namespace {

// Sizes around every boundary between classes and kinds.
std::vector<size_t> boundary_sizes() {
  std::vector<size_t> sizes{1, 2, 15, 16, 17, 100};
  for (size_t edge : {size_t{128}, size_t{1024}, size_t{8192}, kSmallMax, kSlice, 5 * kSlice, kLargeMax, kChunk})
    for (size_t size : {edge - 1, edge, edge + 1}) sizes.push_back(size);
  return sizes;
}

}  // namespace

TEST(Allocator, EverySizeIsAlignedUsableAndItsOwn) {
  std::vector<std::pair<char*, size_t>> blocks;
  for (size_t size = 0; size <= 40000; size += size < 600 ? 1 : 97) {
    auto* block = static_cast<char*>(allocate(size));
    ASSERT_NE(block, nullptr);
    ASSERT_EQ(address_of(block) % 16, 0u);
    size_t usable = usable_size(block, "test");
    ASSERT_GE(usable, size);
    test::fill(block, usable, static_cast<unsigned>(size));
    blocks.emplace_back(block, usable);
  }
  unsigned n = 0;
  for (auto& [block, usable] : blocks) {
    unsigned seed = n < 600 ? n : 600 + (n - 600) * 97;
    ASSERT_TRUE(test::matches(block, usable, seed)) << n;
    ++n;
    deallocate(block, "test");
  }
  EXPECT_EQ(test::allocated_after_collect(), 0u);
}

TEST(Allocator, ReallocMatrix) {
  for (size_t from : boundary_sizes())
    for (size_t to : boundary_sizes()) {
      void* block = allocate(from);
      test::fill(block, from, 42);
      void* other = reallocate(block, to, "test");
      ASSERT_NE(other, nullptr);
      ASSERT_TRUE(test::matches(other, std::min(from, to), 42)) << from << " -> " << to;
      ASSERT_GE(usable_size(other, "test"), to);
      static_cast<char*>(other)[to - 1] = 1;
      deallocate(other, "test");
    }
  EXPECT_EQ(test::allocated_after_collect(), 0u);
}

TEST(Allocator, ReallocOfNullAllocatesAndToZeroFrees) {
  void* block = reallocate(nullptr, 100, "test");
  EXPECT_NE(block, nullptr);
  EXPECT_EQ(reallocate(block, 0, "test"), nullptr);
  EXPECT_NE(block = reallocate(nullptr, 0, "test"), nullptr);
  deallocate(block, "test");
  EXPECT_EQ(test::allocated_after_collect(), 0u);
}

TEST(Allocator, AFailedReallocLeavesTheBlock) {
  for (size_t size : {size_t{100}, 3 * kSlice, 2 * kMiB}) {
    void* block = allocate(size);
    test::fill(block, size, 8);
    errno = 0;
    EXPECT_EQ(reallocate(block, SIZE_MAX / 2, "test"), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_TRUE(test::matches(block, size, 8));
    deallocate(block, "test");
  }
}

TEST(Allocator, CallocIsZeroAfterDirtyFrees) {
  for (size_t size : boundary_sizes())
    for (int round = 0; round < 3; ++round) {
      void* block = allocate_zeroed(1, size);
      ASSERT_TRUE(test::is_zero(block, size)) << size << " round " << round;
      memset(block, 0xff, usable_size(block, "test"));
      deallocate(block, "test");
      if (round == 1) hm_collect();
    }
}

TEST(Allocator, CallocOverADirtyRunIsZero) {
  // A run over slices of which some are fresh and some were freed dirty.
  void* first = allocate(3 * kSlice);
  memset(first, 0xff, 3 * kSlice);
  deallocate(first, "test");
  void* second = allocate_zeroed(1, 6 * kSlice);
  EXPECT_TRUE(test::is_zero(second, 6 * kSlice));
  deallocate(second, "test");
}

TEST(Allocator, CallocRefusesOverflow) {
  errno = 0;
  EXPECT_EQ(allocate_zeroed(size_t{1} << 32, size_t{1} << 32), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(allocate_zeroed(SIZE_MAX, 2), nullptr);
  void* none = allocate_zeroed(0, SIZE_MAX);
  EXPECT_NE(none, nullptr);
  deallocate(none, "test");
}

TEST(Allocator, AlignmentForEverySize) {
  for (size_t alignment = 1; alignment <= kMiB; alignment *= 2)
    for (size_t size : boundary_sizes()) {
      void* block = allocate_aligned(alignment, size);
      ASSERT_NE(block, nullptr);
      ASSERT_EQ(address_of(block) % std::max<size_t>(alignment, 16), 0u);
      ASSERT_GE(usable_size(block, "test"), size);
      deallocate(block, "test");
    }
  EXPECT_EQ(test::allocated_after_collect(), 0u);
}

TEST(Allocator, FreeKeepsErrno) {
  for (size_t size : boundary_sizes()) {
    std::vector<void*> blocks;
    for (int i = 0; i < 40; ++i) blocks.push_back(allocate(size));
    errno = 4242;
    for (void* block : blocks) deallocate(block, "test");
    ASSERT_EQ(errno, 4242) << size;
    hm_collect();
    ASSERT_EQ(errno, 4242) << size;
  }
}

TEST(Allocator, SuccessKeepsErrno) {
  errno = 4242;
  for (size_t size : boundary_sizes()) {
    void* block = allocate_zeroed(1, size);
    block = reallocate(block, 2 * size, "test");
    deallocate(block, "test");
  }
  EXPECT_EQ(errno, 4242);
}

TEST(Allocator, NullIsNoBlock) {
  deallocate(nullptr, "test");
  EXPECT_EQ(usable_size(nullptr, "test"), 0u);
}

TEST(Allocator, RandomOperationsDoNotOverlap) {
  std::mt19937 random(test::kSeed);
  struct Slot {
    void* block = nullptr;
    size_t size = 0;
    unsigned seed = 0;
  };
  std::vector<Slot> slots(1500);
  for (unsigned i = 0; i < 60000; ++i) {
    Slot& slot = slots[random() % slots.size()];
    ASSERT_TRUE(test::matches(slot.block, slot.size, slot.seed));
    deallocate(slot.block, "test");
    slot.size = random() % 50 == 0 ? random() % 100000 : random() % 400;
    slot.block = random() % 8 == 0 ? allocate_aligned(size_t{16} << random() % 6, slot.size) : allocate(slot.size);
    slot.seed = i;
    test::fill(slot.block, slot.size, i);
  }
  EXPECT_TRUE(test::everything_is_valid());
  for (Slot& slot : slots) deallocate(slot.block, "test");
  EXPECT_TRUE(test::everything_is_valid());
  EXPECT_EQ(test::allocated_after_collect(), 0u);
}

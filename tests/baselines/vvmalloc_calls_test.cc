// What every approach does with requests that are larger than most.
#include <gtest/gtest.h>

#include "base/sizes.h"
#include "baselines/vvmalloc/vvmalloc.h"

using namespace hm;

TEST(Calls, NoMemoryForWhatIsTooLarge) {
  for (size_t size : {(size_t{1} << 46) + 1, size_t{1} << 48, size_t{PTRDIFF_MAX}}) {
    EXPECT_EQ(vvmalloc::allocate(size), nullptr);
    EXPECT_EQ(vvmalloc::allocate_aligned(64, size), nullptr);
    EXPECT_EQ(vvmalloc::allocate_aligned(size_t{1} << 62, 1), nullptr);
  }
  EXPECT_TRUE(vvmalloc::is_valid());
}

TEST(Calls, AnAccountOfTheHeap) {
  vvmalloc::Counters before = vvmalloc::counters();
  void* block = vvmalloc::allocate(300 * kMiB);
  vvmalloc::Counters after = vvmalloc::counters();
  EXPECT_EQ(after.extensions, before.extensions + 1);
  EXPECT_GT(after.heap_lock_ns, before.heap_lock_ns);  // there was a system call within
  EXPECT_GE(vvmalloc::usage().mapped, 300 * kMiB);
  vvmalloc::deallocate(block, "test");
}

TEST(Calls, AHugeRequestLeavesTheSegmentInUse) {
  auto* before = static_cast<char*>(vvmalloc::allocate(300 * kKiB));
  void* huge = vvmalloc::allocate(300 * kMiB);
  auto* after = static_cast<char*>(vvmalloc::allocate(300 * kKiB));
  EXPECT_GT(after, before);
  EXPECT_LT(after, before + 2 * kMiB) << "behind the one before, not behind the huge one";
  for (void* block : {static_cast<void*>(before), huge, static_cast<void*>(after)}) vvmalloc::deallocate(block, "test");
  EXPECT_TRUE(vvmalloc::is_valid()) << "of all segments";
}

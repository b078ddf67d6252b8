// What is said of a misused block on the lines behind the first.
#include <algorithm>
#include <csignal>
#include <sstream>

#include "pages/options.h"
#include "profile/samples.h"
#include "support.h"

using namespace hm;
using namespace hm::test;

namespace {

const auto kAborted = testing::KilledBySignal(SIGABRT);

// In any of the libraries a state is one of these; a TAKEN block of the default library may be in a cache.
constexpr const char* kInUse = kHardened ? "in use \\(50 bytes asked for\\)" : kChecked ? "in use" : "in use or cached";
constexpr size_t kClass = 64;

char* allocate(size_t size) { return static_cast<char*>(hm_malloc(size)); }
std::string behind_the_first_line(const std::string& second) { return "^hmalloc: [^\n]*\n  " + second; }
std::string at(const char* block) {
  std::ostringstream text;
  text << " at " << static_cast<const void*>(block) << ": ";
  return text.str();
}

}  // namespace

TEST(Description, OfAPointerIntoASmallBlock) {
  char* block = allocate(50);
  std::string said = "byte 16 of the block of 64 bytes" + at(block) + kInUse +
                     "(; in front of it one [a-z][^;]*)?(; behind it one [a-z][^;]*)?\n$";
  EXPECT_EXIT(hm_free(block + 16), kAborted, behind_the_first_line(said));
  hm_free(block);
}

TEST(Description, OfNeighbours) {
  std::vector<void*> blocks = allocate_many(200, 50);
  char* middle = nullptr;  // of three that are in use
  for (void* each : blocks) {
    auto is_there = [&](char* at) { return std::find(blocks.begin(), blocks.end(), at) != blocks.end(); };
    if (auto* block = static_cast<char*>(each); is_there(block - kClass) && is_there(block + kClass)) middle = block;
  }
  ASSERT_NE(middle, nullptr);
  std::string three = at(middle) + kInUse + "; in front of it one " + kInUse + "; behind it one " + kInUse + "\n$";
  EXPECT_EXIT(hm_free(middle + 16), kAborted, behind_the_first_line("byte 16 of the block of 64 bytes" + three));
  free_all(blocks);
}

// The block in front of it lives on, and so does the superblock; what was freed has left all caches.
TEST(Description, OfASmallBlockThatWasFreedLongAgo) {
  std::vector<void*> blocks = allocate_many(200, 50);
  auto is_followed = [&](void* block) {
    return std::find(blocks.begin(), blocks.end(), static_cast<char*>(block) + kClass) != blocks.end();
  };
  void* kept = *std::find_if(blocks.begin(), blocks.end(), is_followed);
  auto* freed = static_cast<char*>(kept) + kClass;
  for (void* block : blocks)
    if (block != kept) hm_free(block);
  hm_collect();
  std::string said =
      "byte 0 of the block of 64 bytes" + at(freed) + "free; in front of it one " + kInUse + "; behind it one free";
  EXPECT_EXIT(hm_free(freed), kAborted, behind_the_first_line(said));
  hm_free(kept);
}

TEST(Description, OfTheUnusedEndOfASuperblock) {
  char* block = allocate(kHardened ? 40 : 48);
  auto* end = reinterpret_cast<char*>(align_down(address_of(block), kSlice) + blocks_of(class_of(48)) * 48);
  EXPECT_EXIT(hm_free(end), kAborted, behind_the_first_line("behind the last of the blocks of 48 bytes there\n$"));
  hm_free(block);
}

TEST(Description, OfPointersIntoLargeBlocks) {
  for (size_t size : {size_t{128 * kKiB}, size_t{5 * kMiB}})
    for (size_t offset : {size_t{16}, size_t{64 * kKiB}, size_t{128 * kKiB} - 16}) {
      char* block = allocate(size);
      std::string said =
          "byte " + std::to_string(offset) + " of the block of " + std::to_string(size) + " bytes" + at(block) + "in use\n$";
      EXPECT_EXIT(hm_free(block + offset), kAborted, behind_the_first_line(said)) << offset;
      hm_free(block);
    }
}

TEST(Description, OfLargeBlocksThatWereFreed) {
  char* run = allocate(128 * kKiB);
  EXPECT_EXIT((hm_free(run), hm_free(run)), kAborted,
              behind_the_first_line(kHardened ? "byte 0 of the block of 131072 bytes" + at(run) + "freed\n$"
                                              : "no block is there: its memory is free, or kept for one above 32 KB\n$"));
  hm_free(run);
  char* huge = allocate(64 * kMiB);
  EXPECT_EXIT((hm_free(huge), hm_collect(), hm_free(huge)), kAborted,
              behind_the_first_line("a block was there once: its memory went back to the system, or to another block\n$"));
  hm_free(huge);
}

TEST(Description, OfPointersBehindLargeBlocks) {
  char* block = allocate(1300 * kKiB);
  std::string said = "16 bytes behind the end of the block of 1331200 bytes" + at(block) + "in use\n$";
  EXPECT_EXIT(hm_free(block + 1300 * kKiB + 16), kAborted, behind_the_first_line(said));
  hm_free(block);
}

TEST(Description, OfTheAllocatorsOwnData) {
  void* block = allocate(64);
  auto* region = reinterpret_cast<char*>(align_down(address_of(block), kRegion));
  for (size_t offset : {size_t{0}, kDescriptors, kGranuleStates})
    EXPECT_EXIT(hm_free(region + offset), kAborted,
                behind_the_first_line("no block is there, but the allocator's own data\n$"));
  hm_free(block);
}

TEST(Description, OfWhatIsNoneOfOurs) {
  static char global[64];
  EXPECT_EXIT(hm_free(global), kAborted, "^hmalloc: [^\n]*: not a block of hmalloc\n$");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
namespace {

constexpr const char* kStack = " by thread [0-9]+, from\n(    #[0-9]+ 0x[0-9a-f]+[^\n]*\n)+";

// Until one is in the profile.
char* sampled(size_t size) {
  for (int i = 0; i < 1'000'000; ++i) {
    size_t before = samples.any_profiled() ? 1 : 0;
    char* block = allocate(size);
    if (before == 0 && samples.any_profiled()) return block;
    hm_free(block);
  }
  ADD_FAILURE() << "none was sampled";
  return nullptr;
}

}  // namespace

TEST(Description, WhereASampledBlockWasAllocated) {
  ASSERT_EQ(hm_profile_start(4 * kKiB), 0);
  char* block = sampled(100'000);
  EXPECT_EXIT(hm_free(block + 16), kAborted, std::string("in use\n  allocated") + kStack + "$") << "into it";
  if (!kChecked) return;
  EXPECT_EXIT(hm_free_sized(block, 200'000), kAborted, std::string("in use\n  allocated") + kStack + "$");
  hm_free(block);
}

TEST(Description, WhereASampledBlockWasFreed) {
  options.thaw();
  options.profile_frees = 1;
  ASSERT_EQ(hm_profile_start(4 * kKiB), 0);
  // A child does not follow what its parent allocated.
  auto free_twice = [](char* block) { hm_free(block), hm_free(block); };
  std::string said = std::string("\n  one sampled there before was freed") + kStack + "  allocated" + kStack + "$";
  for (size_t size : {100, 100'000}) EXPECT_EXIT(free_twice(sampled(size)), kAborted, said) << size;
}

TEST(Description, NoStackOfTheFreeUnlessAskedFor) {
  ASSERT_EQ(hm_profile_start(4 * kKiB), 0);
  char* block = sampled(100);
  EXPECT_EXIT((hm_free(block), hm_free(block)), kAborted,
              std::string("\n  one sampled there before was freed by thread [0-9]+\n  allocated") + kStack + "$");
  hm_free(block);
}

TEST(Description, TheLastSampleThereCounts) {
  ASSERT_EQ(hm_profile_start(4 * kKiB), 0);
  for (int i = 0; i < 300; ++i) hm_free(sampled(100'000));  // more than are remembered
  char* block = sampled(100'000);
  EXPECT_EXIT((hm_free(block), hm_free(block)), kAborted, "\n  one sampled there before was freed by") << "it is the last";
  hm_free(block);
}

TEST(Description, WhatWasOnlyResizedWasNotFreed) {
  if (kHardened) return;
  options.thaw();
  options.profile_frees = 1;
  ASSERT_EQ(hm_profile_start(4 * kKiB), 0);
  char* block = sampled(100'000);
  EXPECT_EQ(hm_realloc(block, size_t{1} << 50), nullptr);
  EXPECT_EXIT(hm_free(block + 16), kAborted, "in use\n(  allocated|$)");
  hm_free(block);
}

TEST(Description, AnOverflowIsFoundBeforeTheFreeIsRemembered) {
  if (!kHardened) return;
  ASSERT_EQ(hm_profile_start(4 * kKiB), 0);
  char* block = sampled(50);
  const_cast<volatile char*>(block)[50] = 'x';
  EXPECT_EXIT(hm_free(block), kAborted, std::string("behind it one [^\n]*\n  allocated") + kStack + "$");
}

// Each block is in the profile, the one that the malloc is about to return, too.
TEST(Description, WhoFreedWhatWasWrittenToSince) {
  if (!kHardened) return;
  options.thaw();
  options.profile_frees = 1;
  ASSERT_EQ(hm_profile_start(1), 0);
  auto write_after_free = [] {
    char* block = allocate(50);
    hm_free(block);
    const_cast<volatile char*>(block)[5] = 'x';
    hm_collect();
  };
  auto until_it_serves_again = [&] {
    char* block = allocate(50);
    hm_free(block);
    hm_collect();  // out of quarantine
    const_cast<volatile char*>(block)[5] = 'x';
    for (int i = 0; i < 10'000; ++i) (void)allocate(50);
  };
  constexpr const char* kSaid = "\n  the block of 64 bytes was freed, and byte 5 of it written since\n";
  EXPECT_EXIT(write_after_free(), kAborted, kSaid);
  EXPECT_EXIT(until_it_serves_again(), kAborted,
              std::string("hm_malloc|malloc[^\n]*") + kSaid + "  one sampled there before was freed" + kStack);
}
#endif

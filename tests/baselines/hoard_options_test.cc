#include <cstdio>

#include "hoard_support.h"

extern char** environ;

using namespace hoard_test;

namespace {

// Prints S b f K and the number of heaps on descriptor 2 after whatever the options were complained of, and ends.
[[noreturn]] void show(std::initializer_list<std::pair<const char*, const char*>> variables) {
  for (auto [name, value] : variables) setenv(name, value, 1);
  deallocate(allocate(1), "test");
  fprintf(stderr, "%zu %zu %zu %zu %zu\n", options.superblock, options.class_base, options.empty_fraction, options.keep,
          options.heaps);
  _exit(heaps.count() == options.heaps && heaps.superblocks.bytes() == options.superblock ? 0 : 1);
}

void expect(std::initializer_list<std::pair<const char*, const char*>> variables, const char* shown) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(show(variables), testing::ExitedWithCode(0), shown);
}

}  // namespace

TEST(HoardOptions, AreThePapersByDefault) {
  EXPECT_EXIT(show({{"HOARD_HEAPS", "7"}}), testing::ExitedWithCode(0), "^8192 1200 250 4 7\n$");
}

TEST(HoardOptions, AreRead) {
  expect({{"HOARD_SUPERBLOCK", "64K"},
          {"HOARD_CLASS_BASE", "1.5"},
          {"HOARD_EMPTY_FRACTION", "1/8"},
          {"HOARD_KEEP", "0"},
          {"HOARD_HEAPS", "3"}},
         "^65536 1500 125 0 3\n$");
}

TEST(HoardOptions, TwoHeapsForEachProcessor) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(sched_getcpu()), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  expect({{"HOARD_HEAPS", "0"}}, " 2\n$");
}

// One line, and the default.
TEST(HoardOptions, BadSuperblocks) {
  for (const char* value : {"5000", "2048", "2M", "0"})
    expect({{"HOARD_HEAPS", "1"}, {"HOARD_SUPERBLOCK", value}}, "^hoard[^\n]*HOARD_SUPERBLOCK[^\n]*\n8192 [^\n]*\n$");
}

TEST(HoardOptions, BadOthers) {
  for (auto [name, value] : {std::pair{"HOARD_CLASS_BASE", "1"},
                             {"HOARD_CLASS_BASE", "4.001"},
                             {"HOARD_EMPTY_FRACTION", "1/11"},
                             {"HOARD_EMPTY_FRACTION", "1.001"},
                             {"HOARD_EMPTY_FRACTION", "0"},
                             {"HOARD_KEEP", "1000001"},
                             {"HOARD_KEEP", "-1"}})
    expect({{"HOARD_HEAPS", "1"}, {name, value}}, "^hoard[^\n]*HOARD_[^\n]*\n8192 1200 250 4 1\n$");
  expect({{"HOARD_HEAPS", "1025"}}, "^hoard[^\n]*HOARD_HEAPS[^\n]*\n8192 1200 250 4 [0-9]*\n$");
}

// A resolver that allocates while the C library has no environment yet.
TEST(HoardOptions, NoSuperblockBeforeTheOptionsAreKnown) {
  setenv("HOARD_SUPERBLOCK", "16K", 1);
  char** later = environ;
  environ = nullptr;
  void* early = allocate(100);
  EXPECT_TRUE(LargeBlocks::holds(early));
  EXPECT_EQ(heaps.superblocks.taken(), 0u);
  environ = later;
  void* block = allocate(100);
  EXPECT_FALSE(LargeBlocks::holds(block));
  EXPECT_EQ(heaps.superblocks.bytes(), 16 * kKiB);
  deallocate(early, "test");
  deallocate(block, "test");
  EXPECT_TRUE(is_valid());
}

TEST(HoardOptions, AProgramMayHaveNoEnvironment) {
  clearenv();
  hoard::start();
  EXPECT_FALSE(LargeBlocks::holds(allocate(100)));
}

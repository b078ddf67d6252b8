#include <sched.h>

#include <cstdio>

#include "hoard_support.h"

extern char** environ;

using namespace hoard_test;

namespace {

// Prints S b f K and the number of heaps on descriptor 2 after whatever the options were complained of, and ends.
[[noreturn]] void show(Variables variables) {
  for (auto [name, value] : variables) setenv(name, value, 1);
  give(get(1));
  fprintf(stderr, "%zu %zu %zu %zu %zu\n", options.superblock, options.class_base, options.empty_fraction, options.keep,
          options.heaps);
  _exit(heaps.count() == options.heaps && heaps.superblocks.bytes() == options.superblock ? 0 : 1);
}

void expect(Variables variables, const char* shown) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(show(variables), testing::ExitedWithCode(0), shown);
}

}  // namespace

TEST(HoardOptions, AreThePapersByDefaultAndAreRead) {
  expect({{"HOARD_HEAPS", "7"}}, "^8192 1200 250 4 7\n$");
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
TEST(HoardOptions, BadOnes) {
  for (auto [name, value] : {std::pair{"SUPERBLOCK", "5000"},
                             {"SUPERBLOCK", "2048"},
                             {"SUPERBLOCK", "2M"},
                             {"SUPERBLOCK", "0"},
                             {"CLASS_BASE", "1"},
                             {"CLASS_BASE", "4.001"},
                             {"EMPTY_FRACTION", "1/11"},
                             {"EMPTY_FRACTION", "1.001"},
                             {"EMPTY_FRACTION", "0"},
                             {"KEEP", "1000001"},
                             {"KEEP", "-1"}}) {
    std::string variable = std::string("HOARD_") + name;
    expect({{"HOARD_HEAPS", "1"}, {variable.c_str(), value}},
           ("^hoard[^\n]*" + variable + "[^\n]*\n8192 1200 250 4 1\n$").c_str());
  }
  expect({{"HOARD_HEAPS", "1025"}}, "^hoard[^\n]*HOARD_HEAPS[^\n]*\n8192 1200 250 4 [0-9]*\n$");
}

// A resolver that allocates while the C library has no environment yet.
TEST(HoardOptions, NoSuperblockBeforeTheOptionsAreKnown) {
  setenv("HOARD_SUPERBLOCK", "16K", 1);
  char** later = std::exchange(environ, nullptr);
  void* early = get(100);
  EXPECT_TRUE(LargeBlocks::holds(early));
  EXPECT_EQ(taken(), 0u);
  environ = later;
  void* block = get(100);
  EXPECT_FALSE(LargeBlocks::holds(block));
  EXPECT_EQ(heaps.superblocks.bytes(), 16 * kKiB);
  give_all({early, block});
  EXPECT_TRUE(hoard::is_valid());
}

TEST(HoardOptions, AProgramMayHaveNoEnvironment) {
  clearenv();
  hoard::start();
  EXPECT_FALSE(LargeBlocks::holds(get(100)));
}

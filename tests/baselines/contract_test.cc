// What the contract makes of a baseline's few functions: realloc, calloc and the errors; and what a preloaded one does at
// the start and at the end of a program.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "baselines/contract.h"

using namespace hm;

namespace {

char* get(size_t size) { return static_cast<char*>(hm::allocate(size)); }
char* again(void* block, size_t size) { return static_cast<char*>(hm::reallocate(block, size, "realloc")); }
bool is_zero(const char* block, size_t size) { return block[0] == 0 && memcmp(block, block + 1, size - 1) == 0; }

}  // namespace

TEST(Contract, NoBlockIsOfNoBytes) {
  void* one = hm::allocate(0);
  void* two = hm::allocate_zeroed(0, 8);
  EXPECT_NE(one, nullptr);
  EXPECT_NE(two, nullptr);
  EXPECT_NE(one, two);
  EXPECT_NE(hm::allocate_aligned(64, 0), nullptr);
  hm::deallocate(nullptr, "free");
  EXPECT_EQ(hm::usable_size(nullptr, "malloc_usable_size"), 0u);
}

TEST(Contract, ErrorsSetErrnoAndLeaveTheBlock) {
  char* block = get(100);
  block[99] = 'z';
  for (size_t size : {SIZE_MAX, size_t{PTRDIFF_MAX}, size_t{PTRDIFF_MAX} + 1, SIZE_MAX - 15}) {
    errno = 0;
    EXPECT_EQ(hm::allocate(size), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    errno = 0;
    EXPECT_EQ(again(block, size), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    for (size_t alignment : {size_t{16}, size_t{4096}, size_t{1} << 40, size_t{1} << 63}) {
      errno = 0;
      EXPECT_EQ(hm::allocate_aligned(alignment, size), nullptr);
      EXPECT_EQ(errno, ENOMEM);
    }
  }
  errno = 0;
  EXPECT_EQ(hm::allocate_zeroed(size_t{1} << 33, size_t{1} << 33), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(block[99], 'z');
  errno = 4242;
  hm::deallocate(block, "free");
  EXPECT_EQ(errno, 4242);
}

TEST(Contract, ZeroedBlocksAreZero) {
  for (size_t size : {size_t{1}, size_t{100}, size_t{30000}, 100 * kKiB, 3 * kMiB}) {
    char* block = get(size);
    ASSERT_NE(block, nullptr);
    memset(block, 1, size);
    hm::deallocate(block, "free");
    auto* zeroed = static_cast<char*>(hm::allocate_zeroed(1, size));
    EXPECT_TRUE(is_zero(zeroed, size)) << size;
    hm::deallocate(zeroed, "free");
  }
}

TEST(Contract, ReallocKeepsWhatFits) {
  size_t sizes[] = {1, 16, 17, 100, 1024, 1025, 8192, 9000, 40000, 300000, kMiB, kMiB + 1, 3 * kMiB, 9 * kMiB};
  for (size_t from : sizes)
    for (size_t to : sizes) {
      char* block = get(from);
      memset(block, 'b', from);
      block = again(block, to);
      ASSERT_NE(block, nullptr);
      ASSERT_GE(hm::usable_size(block, "test"), to);
      size_t kept = from < to ? from : to;
      ASSERT_EQ(block[0], 'b');
      ASSERT_EQ(memcmp(block, block + 1, kept - 1), 0) << from << " to " << to;
      memset(block, 1, to);
      hm::deallocate(block, "free");
    }
  EXPECT_EQ(hm::usage().allocated, 0u);
  EXPECT_TRUE(baseline::is_valid());
}

TEST(Contract, ReallocMovesOnlyIfItPays) {
  char* block = get(1024);
  EXPECT_EQ(again(block, 1000), block);
  EXPECT_EQ(again(block, 600), block);
  EXPECT_NE(again(block, 300), block);
  char* small = get(16);
  EXPECT_EQ(again(small, 1), small) << "there is nothing smaller";
  char* two = get(32);
  EXPECT_EQ(again(two, 1), two) << "a granule is not worth it";
}

TEST(Contract, ReallocOfNothingAllocatesAndToNothingFrees) {
  char* block = again(nullptr, 50);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(again(block, 0), nullptr);
  EXPECT_EQ(hm::usage().allocated, 0u);
  EXPECT_NE(again(nullptr, 0), nullptr);
}

TEST(ContractDeathTest, ReallocOfWhatIsNoBlockEndsTheProgram) {
  int local = 0;
  EXPECT_DEATH(again(&local, 100), "^one_lock: realloc\\(0x[0-9a-f]+\\): not a block");
  EXPECT_DEATH(again(&local, 0), "realloc.*not a block");
}

#if defined(HM_PRELOADED)

namespace {

// What a shell command says, on both descriptors, under the preloaded library.
std::string said(const std::string& command) {
  std::string line = "env LD_PRELOAD=" HM_PRELOADED " " + command + " 2>&1", text;
  FILE* pipe = popen(line.c_str(), "r");
  for (int c; (c = fgetc(pipe)) != EOF;) text.push_back(static_cast<char>(c));
  pclose(pipe);
  return text;
}

}  // namespace

TEST(Preloaded, AppendsALineOfCountersForEachProcess) {
  std::string file = testing::TempDir() + "one_lock_" + std::to_string(getpid());
  std::string setting = "ONE_LOCK_STATS_FILE=" + file + " ";
  EXPECT_EQ(said(setting + "sh -c '/bin/true & /bin/true & /bin/true; wait; kill -9 $$' >/dev/null"), "");
  std::string lines = said("cat " + file);
  int count = 0;
  for (size_t at = 0; (at = lines.find("{\"allocator\":\"one_lock\",\"mapped\":", at)) != std::string::npos; ++at)
    ++count;
  EXPECT_EQ(count, 3) << lines;
  EXPECT_NE(lines.find(",\"calls\":"), std::string::npos);
  remove(file.c_str());
}

TEST(Preloaded, SaysWhenTheFileCannotBeUsed) {
  EXPECT_EQ(said("ONE_LOCK_STATS_FILE=/no/such/folder true"),
            "one_lock: cannot write ONE_LOCK_STATS_FILE=/no/such/folder\n");
  EXPECT_EQ(said("ONE_LOCK_STATS_FILE=/" + std::string(300, 'x') + " true"),
            "one_lock: ONE_LOCK_STATS_FILE is too long; ignored\n");
}

TEST(Preloaded, SaysNothingUnasked) { EXPECT_EQ(said("true"), ""); }

#endif

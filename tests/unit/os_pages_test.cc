#include "base/os_pages.h"

#include <cerrno>

#include "base/clock.h"
#include "support.h"

using namespace hm;
using namespace hm::test;

namespace {

struct OsPages : testing::Test {
  const size_t page = os::page_size();
  char* map(size_t pages) const { return static_cast<char*>(os::map(pages * page, page)); }
};

}  // namespace

TEST_F(OsPages, PageSizeIsTheSystems) { EXPECT_EQ(page, static_cast<size_t>(sysconf(_SC_PAGESIZE))); }

TEST_F(OsPages, MapsAreAlignedZeroedAndWritable) {
  for (size_t alignment = page; alignment <= 64 * kMiB; alignment *= 4)
    for (size_t bytes : {size_t{1}, page, kChunk + 5}) {
      auto* base = static_cast<char*>(os::map(bytes, alignment));
      EXPECT_EQ(address_of(base) % alignment, 0u);
      EXPECT_TRUE(is_zero(base, bytes));
      base[0] = base[bytes - 1] = 1;
      EXPECT_TRUE(os::unmap(base, bytes));
    }
}

TEST_F(OsPages, APlaceBehindTheStartIsAligned) {
  std::vector<std::pair<void*, size_t>> maps;
  for (size_t alignment = 2 * kChunk; alignment <= 64 * kMiB; alignment *= 2)
    for (size_t bytes : {2 * kChunk, 7 * kChunk, 64 * kMiB}) {
      auto* base = static_cast<char*>(os::map(bytes, alignment, kChunk));
      EXPECT_EQ((address_of(base) + kChunk) % alignment, 0u);
      base[0] = base[bytes - 1] = 1;
      maps.emplace_back(base, bytes);
    }
  for (auto [base, bytes] : maps) EXPECT_TRUE(os::unmap(base, bytes));
}

TEST_F(OsPages, PurgedPagesReadAsZero) {
  char* base = map(4);
  fill(base, 4 * page, 7);
  EXPECT_TRUE(os::purge(base + page, page));
  EXPECT_TRUE(matches(base, page, 7));
  EXPECT_TRUE(is_zero(base + page, page));
  EXPECT_NE(base[2 * page + 1], 0);
}

TEST_F(OsPages, MovedPagesKeepTheirContents) {
  size_t old_bytes = 16 * page, new_bytes = 2 * kChunk;
  char *from = map(16), *to = static_cast<char*>(os::map(new_bytes, kChunk));
  fill(from, old_bytes, 3);
  ASSERT_TRUE(os::move(from, old_bytes, to, new_bytes));
  EXPECT_TRUE(matches(to, old_bytes, 3));
  EXPECT_TRUE(is_zero(to + old_bytes, new_bytes - old_bytes));
}

TEST_F(OsPages, NobodyCanTouchAGuard) {
  auto* base = static_cast<char*>(os::map_guarded(3 * page));
  fill(base, 3 * page, 1);
  EXPECT_DEATH(base[-1] = 1, "");  // of SIGSEGV, which a sanitizer catches
  EXPECT_DEATH(base[3 * page] = 1, "");
  EXPECT_TRUE(os::guard(base + page, page));
  EXPECT_DEATH(base[page] = 1, "");
  EXPECT_TRUE(matches(base, page, 1));
}

TEST_F(OsPages, ThereAreOnlySoManyGuards) {
  size_t made = 0;
  char* base = map(1);
  while (made <= os::kMaxGuards && os::guard(base, page)) ++made;
  EXPECT_EQ(made, os::kMaxGuards);
  EXPECT_NE(os::map_guarded(page), nullptr) << "without";
  os::unguarded(1);
  EXPECT_TRUE(os::guard(base, page));
  EXPECT_FALSE(os::guard(base, page));
}

TEST_F(OsPages, FailureIsNullOrFalseAndLeavesErrno) {
  void* none = reinterpret_cast<void*>(1);
  errno = 4242;
  for (size_t alignment : {page, kChunk}) EXPECT_EQ(os::map(size_t{1} << 60, alignment), nullptr);
  EXPECT_FALSE(os::unmap(none, 4096));
  EXPECT_FALSE(os::purge(none, 4096));
  EXPECT_FALSE(os::guard(none, 4096));
  EXPECT_FALSE(os::resize(reinterpret_cast<void*>(page), page, 2 * page));
  os::prefer_huge_pages(none, 4096);
  EXPECT_EQ(errno, 4242);
}

TEST_F(OsPages, CallsAreCounted) {
  uint64_t before = os::calls();
  os::unmap(map(1), page);
  EXPECT_EQ(os::calls(), before + 2);
}

TEST_F(OsPages, ResidentIsWhatWasTouched) {
  use_no_huge_pages();
  size_t bytes = 1500 * page;
  char* base = map(1500);
  EXPECT_EQ(os::resident(base, bytes), 0u);
  for (size_t at = 0; at < bytes; at += 3 * page) base[at] = 1;
  EXPECT_EQ(os::resident(base, bytes), 500 * page);
  EXPECT_EQ(os::resident(base + 3 * page, 3 * page), page);
  os::unmap(base, bytes);
  EXPECT_EQ(os::resident(base, bytes), 0u) << "an error is no memory";
}

TEST(Clock, TheThreadsGoesOnWithItsWork) {
  uint64_t start = os::cpu_ns(), spent = 0;
  for (int i = 0; i < 100'000'000 && spent < 1'000'000; ++i) spent = os::cpu_ns() - start;
  EXPECT_GE(spent, 1'000'000u);
}

TEST(Clock, DoesNotGoBack) {
  uint64_t first = os::now_ms();
  EXPECT_GE(os::now_ms(), first);
  EXPECT_GT(first, 0u);
}

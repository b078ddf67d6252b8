#include "base/os_pages.h"
#include "base/clock.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>
#include <vector>

#include "support.h"

using namespace hm;

TEST(OsPages, PageSizeIsTheSystems) { EXPECT_EQ(os::page_size(), static_cast<size_t>(sysconf(_SC_PAGESIZE))); }

TEST(OsPages, MapsAreAlignedZeroedAndWritable) {
  for (size_t alignment = os::page_size(); alignment <= 64 * kMiB; alignment *= 4)
    for (size_t bytes : {size_t{1}, os::page_size(), kChunk + 5}) {
      auto* base = static_cast<char*>(os::map(bytes, alignment));
      ASSERT_NE(base, nullptr);
      EXPECT_EQ(address_of(base) % alignment, 0u);
      EXPECT_TRUE(test::is_zero(base, bytes));
      base[0] = base[bytes - 1] = 1;
      EXPECT_TRUE(os::unmap(base, bytes));
    }
}

TEST(OsPages, APlaceBehindTheStartIsAligned) {
  std::vector<std::pair<void*, size_t>> maps;
  for (size_t alignment = 2 * kChunk; alignment <= 64 * kMiB; alignment *= 2)
    for (size_t bytes : {2 * kChunk, 7 * kChunk, 64 * kMiB}) {
      auto* base = static_cast<char*>(os::map(bytes, alignment, kChunk));
      ASSERT_NE(base, nullptr);
      EXPECT_EQ((address_of(base) + kChunk) % alignment, 0u);
      base[0] = base[bytes - 1] = 1;
      maps.emplace_back(base, bytes);
    }
  for (auto [base, bytes] : maps) EXPECT_TRUE(os::unmap(base, bytes));
}

TEST(OsPages, PurgedPagesReadAsZero) {
  auto* base = static_cast<char*>(os::map(4 * os::page_size(), os::page_size()));
  test::fill(base, 4 * os::page_size(), 7);
  EXPECT_TRUE(os::purge(base + os::page_size(), os::page_size()));
  EXPECT_TRUE(test::matches(base, os::page_size(), 7));
  EXPECT_TRUE(test::is_zero(base + os::page_size(), os::page_size()));
  EXPECT_NE(base[2 * os::page_size() + 1], 0);
  EXPECT_TRUE(os::unmap(base, 4 * os::page_size()));
}

TEST(OsPages, MovedPagesKeepTheirContents) {
  size_t old_bytes = 16 * os::page_size(), new_bytes = 2 * kChunk;
  auto* from = static_cast<char*>(os::map(old_bytes, os::page_size()));
  auto* to = static_cast<char*>(os::map(new_bytes, kChunk));
  test::fill(from, old_bytes, 3);
  ASSERT_TRUE(os::move(from, old_bytes, to, new_bytes));
  EXPECT_TRUE(test::matches(to, old_bytes, 3));
  EXPECT_TRUE(test::is_zero(to + old_bytes, new_bytes - old_bytes));
  EXPECT_TRUE(os::unmap(to, new_bytes));
}

TEST(OsPages, NobodyCanTouchAGuard) {
  size_t page = os::page_size();
  auto* base = static_cast<char*>(os::map_guarded(3 * page));
  test::fill(base, 3 * page, 1);
  EXPECT_DEATH(base[-1] = 1, "");  // of SIGSEGV, which a sanitizer catches
  EXPECT_DEATH(base[3 * page] = 1, "");
  EXPECT_TRUE(os::guard(base + page, page));
  EXPECT_DEATH(base[page] = 1, "");
  EXPECT_TRUE(test::matches(base, page, 1));
}

TEST(OsPages, ThereAreOnlySoManyGuards) {
  size_t page = os::page_size(), made = 0;
  auto* base = static_cast<char*>(os::map(page, page));
  while (made <= os::kMaxGuards && os::guard(base, page)) ++made;
  EXPECT_EQ(made, os::kMaxGuards);
  EXPECT_NE(os::map_guarded(page), nullptr) << "without";
  os::unguarded(1);
  EXPECT_TRUE(os::guard(base, page));
  EXPECT_FALSE(os::guard(base, page));
}

TEST(OsPages, FailureIsNullOrFalseAndLeavesErrno) {
  errno = 4242;
  EXPECT_EQ(os::map(size_t{1} << 60, os::page_size()), nullptr);
  EXPECT_EQ(os::map(size_t{1} << 60, kChunk), nullptr);
  EXPECT_FALSE(os::unmap(reinterpret_cast<void*>(1), 4096));
  EXPECT_FALSE(os::purge(reinterpret_cast<void*>(1), 4096));
  EXPECT_FALSE(os::guard(reinterpret_cast<void*>(1), 4096));
  EXPECT_FALSE(os::resize(reinterpret_cast<void*>(os::page_size()), os::page_size(), 2 * os::page_size()));
  os::prefer_huge_pages(reinterpret_cast<void*>(1), 4096);
  EXPECT_EQ(errno, 4242);
}

TEST(OsPages, CallsAreCounted) {
  uint64_t before = os::calls();
  void* base = os::map(1, os::page_size());
  os::unmap(base, 1);
  EXPECT_EQ(os::calls(), before + 2);
}

TEST(OsPages, ResidentIsWhatWasTouched) {
  size_t page = os::page_size(), bytes = 1500 * page;
  auto* base = static_cast<char*>(os::map(bytes, page));
  EXPECT_EQ(os::resident(base, bytes), 0u);
  for (size_t at = 0; at < bytes; at += 3 * page) base[at] = 1;
  EXPECT_EQ(os::resident(base, bytes), 500 * page);
  EXPECT_EQ(os::resident(base + 3 * page, 3 * page), page);
  os::unmap(base, bytes);
  EXPECT_EQ(os::resident(base, bytes), 0u) << "an error is no memory";
}

TEST(OsPages, TheThreadsClockGoesOnWithItsWork) {
  uint64_t start = os::cpu_ns(), spent = 0;
  for (int i = 0; i < 100'000'000 && spent < 1'000'000; ++i) spent = os::cpu_ns() - start;
  EXPECT_GE(spent, 1'000'000u);
}

TEST(OsPages, ClockDoesNotGoBack) {
  uint64_t first = os::now_ms();
  EXPECT_GE(os::now_ms(), first);
  EXPECT_GT(first, 0u);
}

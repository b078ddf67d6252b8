// What is true of every baseline: its few functions, and what the contract makes of them.
#include "baselines/contract.h"

#include <random>

#include "contract_support.h"

using namespace contract;

namespace {

char* again(void* block, size_t size) { return static_cast<char*>(hm::reallocate(block, size, "realloc")); }
void fill_all_of(char* block, char byte) { memset(block, byte, usable(block)); }

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
  for (size_t size : {SIZE_MAX, size_t{PTRDIFF_MAX}, size_t{PTRDIFF_MAX} + 1, SIZE_MAX - 15, SIZE_MAX - 71,
                      size_t{PTRDIFF_MAX} / 2, size_t{1} << 48}) {
    errno = 0;
    EXPECT_EQ(hm::allocate(size), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    errno = 0;
    EXPECT_EQ(again(block, size), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    for (size_t alignment : {size_t{16}, size_t{64}, size_t{4096}, size_t{1} << 40, size_t{1} << 63}) {
      errno = 0;
      EXPECT_EQ(hm::allocate_aligned(alignment, size), nullptr);
      EXPECT_EQ(errno, ENOMEM);
    }
  }
  EXPECT_EQ(hm::allocate_aligned(size_t{1} << 62, 1), nullptr);
  errno = 0;
  EXPECT_EQ(hm::allocate_zeroed(size_t{1} << 33, size_t{1} << 33), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(block[99], 'z');
  EXPECT_TRUE(baseline::is_valid());
}

TEST(Contract, FreeKeepsErrno) {
  for (size_t size : {size_t{10}, size_t{40'000}, size_t{4'000'000}}) {
    char* block = get(size);
    errno = 4242;
    give(block);
    EXPECT_EQ(errno, 4242) << size;
  }
}

TEST(Contract, ZeroedBlocksAreZero) {
  for (size_t size : {size_t{1}, size_t{100}, size_t{30000}, 100 * kKiB, 3 * kMiB}) {
    char* block = get(size);
    ASSERT_NE(block, nullptr);
    give(memset(block, 1, size));
    auto* zeroed = static_cast<char*>(hm::allocate_zeroed(1, size));
    EXPECT_TRUE(holds_only(zeroed, size, 0)) << size;
    give(zeroed);
  }
}

TEST(Contract, ReallocKeepsWhatFits) {
  size_t sizes[] = {1, 16, 17, 100, 1024, 1025, 8192, 9000, 40000, 300000, kMiB, kMiB + 1, 3 * kMiB, 9 * kMiB};
  for (size_t from : sizes)
    for (size_t to : sizes) {
      char* block = again(memset(get(from), 'b', from), to);
      ASSERT_NE(block, nullptr);
      ASSERT_GE(usable(block), to);
      ASSERT_TRUE(holds_only(block, std::min(from, to), 'b')) << from << " to " << to;
      give(memset(block, 1, to));
    }
  expect_nothing_left();
}

TEST(Contract, ReallocMovesOnlyIfItPays) {
  char* block = get(1024);
  size_t all = usable(block);
  EXPECT_EQ(again(block, all - 24), block);
  EXPECT_EQ(again(block, all / 2), block) << "half of it is not worth a copy";
  EXPECT_NE(again(block, 300), block);
  for (size_t size : {16, 32})
    if (char* small = get(size); usable(small) <= 32) { EXPECT_EQ(again(small, 1), small) << "a granule is not worth it"; }
}

TEST(Contract, ReallocOfNothingAllocatesAndToNothingFrees) {
  char* block = again(nullptr, 50);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(again(block, 0), nullptr);
  expect_nothing_left();
  EXPECT_NE(again(nullptr, 0), nullptr);
}

TEST(Contract, EverySizeIsAlignedAndItsOwn) {
  std::vector<char*> blocks;
  for (size_t size = 1; size < 4 * kMiB; size += size / 7 + 1) {
    char* block = get(size);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(address_of(block) % 16, 0u);
    EXPECT_GE(usable(block), size);
    fill_all_of(block, static_cast<char>(blocks.size()));
    blocks.push_back(block);
  }
  EXPECT_TRUE(baseline::is_valid());
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_TRUE(holds_only(blocks[i], usable(blocks[i]), static_cast<char>(i)));
    give(blocks[i]);
  }
  expect_nothing_left();
}

TEST(Contract, EveryAlignmentWithEverySize) {
  std::vector<char*> blocks;
  for (size_t alignment = 32; alignment <= 64 * kMiB; alignment *= 2)
    for (size_t size : {size_t{1}, size_t{100}, size_t{300}, size_t{1100}, size_t{5000}, size_t{9000}, size_t{30000},
                        size_t{70000}, 3 * kMiB}) {
      auto* block = static_cast<char*>(hm::allocate_aligned(alignment, size));
      ASSERT_NE(block, nullptr);
      ASSERT_EQ(address_of(block) % alignment, 0u) << size;
      ASSERT_GE(usable(block), size);
      fill_all_of(block, static_cast<char>(blocks.size()));
      EXPECT_TRUE(baseline::is_valid()) << alignment << " " << size;
      blocks.push_back(block);
    }
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_TRUE(holds_only(blocks[i], usable(blocks[i]), static_cast<char>(i))) << i;
    give(blocks[i]);
  }
  expect_nothing_left();
}

TEST(Contract, WhatIsFreedIsUsedAgain) {
  for (size_t size : {size_t{100}, size_t{40000}, 5 * kMiB}) {
    give(get(size));
    size_t mapped = hm::usage().mapped;
    for (int i = 0; i < 1000; ++i) give(get(size));
    EXPECT_EQ(hm::usage().mapped, mapped) << size;
  }
}

// Grows and shrinks, so that caches overflow and run empty.
TEST(Contract, NoBlockIsHandedOutTwice) {
  constexpr size_t kOperations = 40'000;
  std::mt19937 random(1);
  std::vector<std::pair<char*, size_t>> live;
  for (size_t i = 0; i < kOperations; ++i) {
    size_t wanted = i * 8 / kOperations % 2 == 0 ? 3000 : 300;
    if (!live.empty() && (random() % 3 != 0) == (live.size() > wanted)) {
      std::swap(live[random() % live.size()], live.back());
      auto [block, size] = live.back();
      ASSERT_TRUE(holds_only(block, size, static_cast<char>(size)));
      give(block);
      live.pop_back();
    } else {
      size_t size = 1 + random() % (i % 40 == 0 ? 100'000 : 800);
      live.emplace_back(static_cast<char*>(memset(get(size), static_cast<char>(size), size)), size);
    }
    EXPECT_TRUE(i % 1000 != 0 || baseline::is_valid()) << i;
  }
  for (auto& [block, size] : live) give(block);
  expect_nothing_left();
}

TEST(Contract, BlocksWander) { let_blocks_wander(); }

TEST(Contract, TheAccountIsReadWhileThreadsWork) {
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      while (!done) {
        std::array<char*, 200> blocks;
        for (char*& block : blocks) block = get(50);
        for (char* block : blocks) give(block);
      }
    });
  for (int i = 0; i < 200; ++i) EXPECT_LE(hm::usage().allocated + hm::usage().cached, 16 * kMiB);
  done = true;
  for (std::thread& thread : threads) thread.join();
}

// In the child are the blocks of all threads and the threads of none.  Of Hoard and ar_malloc not the large ones, which
// they give back outside their locks: what a thread that is gone was giving back is in between.
TEST(Contract, TheChildOfAForkGoesOn) {
  if (kThreadSanitizer) GTEST_SKIP() << "its run-time does not survive a fork beside threads";
  const std::string_view name = HM_LIBRARY_NAME;
  const size_t largest = name == "hoard" || name.starts_with("ar_malloc") ? 4001 : 200'003;
  std::atomic<bool> done{false};
  std::atomic<int> started{0};
  std::array<std::atomic<char*>, 3> theirs;
  std::vector<std::thread> threads;
  for (auto& block : theirs)
    threads.emplace_back([&] {
      block = get(500);
      ++started;
      for (size_t i = 1; !done; i = i * 5 % largest) {
        give(get(i));
        std::array<char*, 100> blocks;
        for (char*& one : blocks) one = get(i % 1000 + 1);
        for (char* one : blocks) give(one);
      }
    });
  while (started != 3) std::this_thread::yield();
  char* mine = get(500);
  auto work = [] {
    for (size_t size = 1; size < 5'000'000; size = size * 3 + 1) give(memset(get(size), 1, size));
  };
  for (int i = 0; i < 50 && !HasFailure(); ++i)
    EXPECT_EQ(status_of_child([&] {
                give(mine);
                for (auto& block : theirs) give(block);
                work();
                if (kThreadsInChild) std::thread(work).join();
                return kPaper || baseline::is_valid();
              }),
              0)
        << i;
  done = true;
  for (std::thread& thread : threads) thread.join();
  give(mine);
  for (auto& block : theirs) give(block);
  expect_nothing_left();
}

// Guarded blocks, as far as the program makes no mistake.
#include "guarded.h"
#include "profile/samples.h"

using namespace hm;
using namespace hm::test;

namespace {

void* zeroed(size_t size) { return hm_calloc(1, size); }
void* lines(size_t size) { return hm_aligned_alloc(64, size); }
void* shared(size_t size) { return hm_shared_alloc(size); }
void* grown(size_t size) { return hm_realloc(hm_malloc(size / 3 + 1), size); }

size_t places() { return std::min(GuardedBlocks::kMostPlaces, (kChunk / os::page_size() - 1) / 2); }

std::vector<char*> live_ones(size_t size) {  // until no more are made
  std::vector<char*> blocks;
  for (int i = 0; i < 3'000'000; ++i) {
    void* block = hm_malloc(size);
    if (kind_of(block) == ChunkKind::kGuarded) blocks.push_back(static_cast<char*>(block));
    else hm_free(block);
  }
  return blocks;
}

}  // namespace

TEST_F(Guarded, EachLiesAloneBetweenPagesThatAreInaccessible) {
  size_t page = os::page_size(), most = std::min(page, kSmallMax), at_end = 0, n = 0;
  for (size_t size : {size_t{1}, size_t{16}, size_t{24}, size_t{100}, size_t{1000}, most - 1, most})
    for (int i = 0; i < 20; ++i, ++n) {
      char* block = guarded(size);
      uintptr_t start = align_down(address_of(block), page);
      EXPECT_TRUE(is_guard(start - page) && is_guard(start + page));
      EXPECT_FALSE(is_guard(start));
      EXPECT_EQ(hm_usable_size(block), align_up(size, kGranule));
      EXPECT_TRUE(ends_page(block, size) || address_of(block) == start);
      at_end += ends_page(block, size);
      fill(block, size, kSeed);
      EXPECT_TRUE(matches(block, size, kSeed));
      hm_free(block);
      EXPECT_TRUE(is_guard(start)) << "freed";
    }
  EXPECT_GT(at_end, n / 2);
}

TEST_F(Guarded, WhateverAllocatesAndFreesThem) {
  for (size_t size : {size_t{40}, size_t{640}, size_t{2000}}) {
    hm_free(guarded(size));
    hm_free_sized(guarded(size), size);
    hm_local_free_sized(guarded(size), size);
    hm_shared_free_sized(guarded(size, shared), size);
    hm_free(guarded(size, hm_local_alloc));
    hm_free(guarded(size, grown));
    on_thread([block = guarded(size)] { hm_free(block); });
    char* aligned = guarded(size, lines);
    EXPECT_EQ(address_of(aligned) % 64, 0u);
    hm_free(aligned);
    char* whole_lines = guarded(size, shared);
    EXPECT_EQ(address_of(whole_lines) % 64, 0u);
    EXPECT_EQ(hm_usable_size(whole_lines) % 64, 0u);
    hm_shared_free(whole_lines);
    for (int i = 0; i < 300; ++i) {  // each place once and more
      char* clear = guarded(size, zeroed);
      ASSERT_TRUE(is_zero(clear, size));
      memset(clear, 0xff, size);
      hm_free(clear);
    }
  }
  EXPECT_EQ(guarded_blocks.live(), 0u);
  EXPECT_TRUE(everything_is_valid());
}

TEST_F(Guarded, AReallocKeepsWhatIsInIt) {
  for (size_t from : {size_t{24}, size_t{500}, size_t{4000}})
    for (size_t to : {size_t{1}, from / 2, from - 1, from, from + 8, from + 9, 3 * from, 40 * kKiB}) {
      char* block = guarded(from);
      fill(block, from, kSeed);
      void* other = hm_realloc(block, to);
      EXPECT_TRUE(matches(other, std::min(from, to), kSeed)) << from << " to " << to;
      hm_free(other);
      char* local = guarded(from);
      fill(local, from, kSeed);
      void* moved = hm_local_realloc(local, to);
      EXPECT_TRUE(matches(moved, std::min(from, to), kSeed)) << from << " to " << to;
      memset(moved, 1, to);
      hm_local_free_sized(moved, to);
    }
  EXPECT_EQ(guarded_blocks.live(), 0u);
}

TEST_F(Guarded, FewAreLiveAtATimeAndMoreWhereTheProgramHoldsMore) {
  std::vector<char*> few = live_ones(256);
  EXPECT_GE(few.size(), 8u);
  EXPECT_LE(few.size(), 24u);
  std::vector<void*> held = allocate_many(40'000, 1024);
  std::vector<char*> more = live_ones(256);
  EXPECT_GE(guarded_blocks.live(), std::min<size_t>(40, places()));
  EXPECT_LE(guarded_blocks.live(), 70u);
  for (const auto& blocks : {few, more})
    for (char* block : blocks) hm_free(block);
  free_all(held);
}

TEST_F(Guarded, AFreedPlaceWaitsUntilAllOthersHaveServed) {
  std::set<uintptr_t> pages;
  for (bool is_new = true; is_new;) {
    char* block = guarded(64);
    is_new = pages.insert(align_down(address_of(block), os::page_size())).second;
    hm_free(block);
  }
  EXPECT_EQ(pages.size(), places());
}

TEST_F(Guarded, WhatIsFreedIsNotResident) {
  use_no_huge_pages();
  char* block = guarded(1000);
  auto* page = reinterpret_cast<char*>(align_down(address_of(block), os::page_size()));
  memset(block, 1, 1000);
  EXPECT_GT(resident(page, os::page_size()), 0u);
  hm_free(block);
  EXPECT_EQ(resident(page, os::page_size()), 0u);
}

TEST(Guard, MakesAtMostOneInAPause) {
  ASSERT_TRUE(guarded_blocks.start(60'000));
  sampler.start_for_guard();
  std::vector<char*> blocks = live_ones(1000);
  EXPECT_EQ(blocks.size(), 1u);
  for (char* block : blocks) hm_free(block);
  EXPECT_EQ(live_ones(1000).size(), 0u);
}

TEST_F(Guarded, GaugesCountThem) {
  size_t before = stats_now().allocated;
  std::vector<char*> blocks = live_ones(1000);
  EXPECT_EQ(stats_now().allocated, before + blocks.size() * 1008);
  EXPECT_EQ(guarded_blocks.bytes(), blocks.size() * 1008);
  for (char* block : blocks) hm_free(block);
  EXPECT_EQ(stats_now().allocated, before);
}

// The profile must not lack those that are guarded.
TEST_F(Guarded, AProfileHasThemToo) {
  ASSERT_EQ(hm_profile_start(8 * kKiB), 0);
  char* block = guarded(512);
  EXPECT_TRUE(samples.any_profiled());
  hm_free(block);
  EXPECT_FALSE(samples.any());
  hm_profile_stop();
}

TEST_F(Guarded, AChildOfAForkHasItsParentsAndMakesItsOwn) {
  char* block = guarded(200);
  fill(block, 200, kSeed);
  EXPECT_TRUE(child_succeeds([&] {
    bool whole = matches(block, 200, kSeed);
    hm_free(block);
    hm_free(guarded(48));
    return whole && guarded_blocks.live() == 0;
  }));
  EXPECT_TRUE(matches(block, 200, kSeed));
  hm_free(block);
}

// Forks while another thread makes and frees them at every moment: what it was doing is lost, and nothing else.
TEST_F(Guarded, AForkInTheMiddleLosesAPlaceAtMost) {
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) hm_free(guarded(2048));
  });
  for (int i = 0; i < 30; ++i)
    EXPECT_TRUE(child_succeeds([] {
      for (int n = 0; n < 20; ++n) hm_free(guarded(128));
      return true;
    }));
  stop = true;
  other.join();
}

// Both spin, for a race; but not for ever where there is one processor.
TEST(GuardedPlaces, OfTwoThatEndALifeAtOnceOneDoes) {
  constexpr int kRounds = 100'000;
  // Each round hands over twice, and on a machine that is busy with other things that takes as long as their turns.
  const auto last = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  static GuardedPlace place;
  std::atomic<int> ended{0}, arrived{0}, rounds{kRounds};
  auto wait_for = [&](int all) {
    ++arrived;
    for (int spins = 0; arrived < all; ++spins)
      if (spins > 1000) std::this_thread::yield();
  };
  on_threads(2, [&](unsigned t) {
    for (int i = 0; i < rounds; ++i) {
      if (t == 0) place.become_live();
      if (t == 0 && std::chrono::steady_clock::now() > last) rounds = i + 1;
      wait_for(4 * i + 2);
      for (int n = t == 0 ? i % 511 : i % 509; n > 0; --n) asm volatile("");  // who is told last is late
      ended += place.end_life();
      wait_for(4 * i + 4);
    }
  });
  EXPECT_EQ(ended, rounds);
}

// Nothing but the place itself orders what they write there, one after another.
TEST_F(Guarded, ManyThreadsUseTheSamePlaces) {
  on_threads(3, [](unsigned) {
    for (size_t i = 0; i < 5 * places(); ++i) hm_free(guarded(256));
  });
  EXPECT_EQ(guarded_blocks.live(), 0u);
}

TEST_F(Guarded, ManyThreadsHandThemOver) {
  std::array<std::atomic<char*>, 4> slots{};
  on_threads(4, [&](unsigned t) {
    std::minstd_rand random(t + 1);
    for (int i = 0; i < 300; ++i) {
      char* block = guarded(64);
      memset(block, static_cast<int>(t), 64);
      hm_free(slots[random() % slots.size()].exchange(block));
    }
  });
  for (auto& slot : slots) hm_free(slot.exchange(nullptr));
  EXPECT_EQ(guarded_blocks.live(), 0u);
  EXPECT_EQ(guarded_blocks.bytes(), 0u);
}

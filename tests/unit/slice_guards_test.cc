// Guards among the slices of the hardened library.
#include "pages/slice_guards.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <cerrno>
#include <map>

#include "at_every_instruction.h"
#include "base/os_pages.h"
#include "hardened.h"
#include "slices.h"

using namespace hm;
using namespace hm::test;

namespace {

struct SliceGuarded : testing::Test, Pool {
  // Opens so many chunks, and takes all slices of all of them, in runs of n.
  std::vector<SlicePool::Run> fill(size_t chunks, size_t n = 1) {
    std::vector<SlicePool::Run> runs;
    while (pool.chunks() < chunks) runs.push_back(take(n));
    for (SlicePool::Run run = pool.allocate(n, false); run.first != nullptr; run = pool.allocate(n, false))
      runs.push_back(run);
    return runs;
  }
  void release(const std::vector<SlicePool::Run>& runs, size_t n = 1) {
    for (const SlicePool::Run& run : runs) pool.release(*run.first, n);
  }
};

std::set<Chunk*> chunks_of(const std::vector<SlicePool::Run>& runs) {
  std::set<Chunk*> chunks;
  for (const SlicePool::Run& run : runs) chunks.insert(&Chunk::of(*run.first));
  return chunks;
}
size_t guards_of(const std::set<Chunk*>& chunks) {
  size_t guards = 0;
  for (const Chunk* chunk : chunks) guards += slices_in(chunk->guards);
  return guards;
}
// As if the process had all the mappings that the system allows it.
bool forbid_protection() {
  sock_filter program[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 1),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  sock_fprog filter{std::size(program), program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}
size_t slices_in_page() { return std::max(os::page_size() / kSlice, size_t{1}); }

}  // namespace

TEST_F(SliceGuarded, OneOfSixteenIsInaccessibleAndNobodys) {
  std::vector<SlicePool::Run> runs = fill(10);
  std::set<char*> taken;
  for (const SlicePool::Run& run : runs) taken.insert(base(run));
  size_t in_page = slices_in_page(), in_group = SliceGuards::kEvery * in_page;
  for (Chunk* chunk : chunks_of(runs)) {
    size_t metadata = chunk->index() == 0 ? kMetaSlices : 0;
    for (size_t first = 0; first < kSlicesInChunk; first += in_group) {
      size_t guards = slices_in(chunk->guards & mask_of(first, in_group));
      EXPECT_LE(guards, in_page);
      if (first >= metadata) { EXPECT_EQ(guards, in_page); }
    }
    for (size_t slice = metadata; slice < kSlicesInChunk; ++slice) {
      char* start = slice_at(*chunk, slice);
      bool guard = (chunk->guards >> slice & 1) != 0;
      EXPECT_EQ(taken.count(start), guard ? 0u : 1u);
      for (char* at : {start, start + kSlice - 1}) EXPECT_EQ(is_guard(align_down(address_of(at), os::page_size())), guard);
      EXPECT_EQ(Slice::of(address_of(start)).kind(), SliceKind::kUnused);
    }
  }
  EXPECT_TRUE(pool.is_valid());
}

// Each place is as likely as any other: of 16 places each is drawn in 100 chunks, but once in 10^9 runs.
TEST_F(SliceGuarded, TheirPlacesAreDrawn) {
  std::map<size_t, size_t> drawn;
  std::vector<SlicePool::Run> runs = fill(120);
  for (const Chunk* chunk : chunks_of(runs))
    for (uint64_t left = chunk->guards; left != 0; left &= left - 1)
      ++drawn[static_cast<size_t>(std::countr_zero(left)) / slices_in_page() % SliceGuards::kEvery];
  EXPECT_EQ(drawn.size(), SliceGuards::kEvery);
}

// What is behind a superblock that somebody holds: a guard, in one of fifteen cases.
TEST_F(SliceGuarded, AnOverflowMeetsOneSoonerOrLater) {
  std::vector<SlicePool::Run> runs = fill(kChunksInRegion * 10);
  std::set<Chunk*> chunks = chunks_of(runs);
  size_t at_once = 0, longest = 0;
  for (const SlicePool::Run& run : runs) {
    size_t slices = 0;
    for (char* at = base(run) + kSlice;; at += kSlice, ++slices) {
      Chunk& chunk = Chunk::of(Slice::of(address_of(at)));
      if (address_of(at) % kRegion == 0 || chunks.count(&chunk) == 0) break;
      if ((chunk.guards >> Slice::of(address_of(at)).slice() % kSlicesInChunk & 1) == 0) continue;
      at_once += slices == 0;
      longest = std::max(longest, slices);
      break;
    }
  }
  EXPECT_GT(at_once, runs.size() / 20 / slices_in_page());
  EXPECT_LT(at_once, runs.size() / 12 / slices_in_page());
  EXPECT_LE(longest, 2 * (SliceGuards::kEvery - 1) * slices_in_page());
  EXPECT_GT(longest, SliceGuards::kEvery);
}

TEST_F(SliceGuarded, EachChunkHasRoomForTheLongestRun) {
  fill(1000, SlicePool::kMaxRun);
  EXPECT_EQ(pool.chunks(), 1000u);
  EXPECT_GE(SlicePool::kMaxRun, slices_of(ClassIndex(kClasses - 1)));
}

TEST_F(SliceGuarded, AChunkOfFreeSlicesGoesBackInOneCall) {
  std::vector<SlicePool::Run> runs = fill(3);
  for (const SlicePool::Run& run : runs) memset(base(run), 1, kSlice);
  release(runs);
  size_t slices = runs.size();
  EXPECT_EQ(pool.gauges().dirty_slices, slices);
  uint64_t calls = os::calls();
  EXPECT_EQ(purge(), slices * kSlice);
  EXPECT_LE(os::calls() - calls, 2 * 3 + 5u) << "one for slices, two for states; the last chunk stays open";
  EXPECT_EQ(pool.chunks(), 1u);
  EXPECT_EQ(pool.used(), 0u);
  EXPECT_TRUE(pool.is_valid());
}

TEST_F(SliceGuarded, AClosedChunkKeepsThem) {
  std::vector<SlicePool::Run> runs = fill(2);
  std::map<Chunk*, uint64_t> before;
  for (Chunk* chunk : chunks_of(runs)) before[chunk] = chunk->guards;
  release(runs);
  purge();
  EXPECT_EQ(pool.chunks(), 1u);
  uint64_t calls = os::calls();
  runs = fill(2);
  EXPECT_EQ(os::calls(), calls);
  for (auto [chunk, guards] : before) EXPECT_EQ(chunk->guards, guards);
  for (const SlicePool::Run& run : runs) EXPECT_TRUE(is_filled(base(run), 1, 0));
}

TEST_F(SliceGuarded, TheirNumberFallsWhenTheirMemoryIsUnmapped) {
  size_t before = SliceGuards::count();
  std::vector<SlicePool::Run> runs = fill(3 * kChunksInRegion);
  EXPECT_EQ(SliceGuards::count() - before, guards_of(chunks_of(runs)));
  Chunk* last = &Chunk::of(*runs.back().first);
  for (const SlicePool::Run& run : runs)
    if (&Chunk::of(*run.first) != last) pool.release(*run.first, 1);
  purge();
  EXPECT_EQ(pool.chunks(), 1u);
  pool.unmap_closed();
  std::set<Chunk*> left{last, Chunk::of_region(last->region())};
  EXPECT_EQ(SliceGuards::count() - before, guards_of(left));
  for (const SlicePool::Run& run : fill(kChunksInRegion)) EXPECT_TRUE(is_filled(base(run), 1, 0));
  EXPECT_TRUE(pool.is_valid());
}

// Where no whole region can be had, chunks that were unmapped are mapped again one by one.
TEST_F(SliceGuarded, AChunkThatIsMappedAgainGetsNewOnes) {
  HM_NEEDS(kLimitsAddresses);
  auto body = [&] {
    size_t before = SliceGuards::count();
    std::vector<SlicePool::Run> runs = fill(kChunksInRegion);
    for (const SlicePool::Run& run : runs)
      if (Chunk::of(*run.first).index() != 0) pool.release(*run.first, 1);
    purge();
    pool.unmap_closed();
    rlimit most{mapped_bytes() + 3 * kChunk, RLIM_INFINITY};
    if (pool.chunks() != 1 || setrlimit(RLIMIT_AS, &most) != 0) return false;
    std::set<Chunk*> again = chunks_of(fill(3));
    for (const Chunk* chunk : again)
      for (uint64_t left = chunk->guards; left != 0; left &= left - 1)
        if (!is_guard(address_of(slice_at(*chunk, static_cast<size_t>(std::countr_zero(left)))))) return false;
    again.insert(Chunk::of_region((*again.begin())->region()));
    return again.size() == 3 && guards_of(again) > 6 && SliceGuards::count() - before == guards_of(again) && pool.is_valid();
  };
  EXPECT_TRUE(child_succeeds(body));
}

TEST_F(SliceGuarded, ThereAreNoMoreThanTheBound) {
  std::vector<SlicePool::Run> runs;
  while (SliceGuards::count() + SliceGuards::kEvery * slices_in_page() < SliceGuards::kMost) runs.push_back(take(8));
  size_t chunks = pool.chunks();
  while (pool.chunks() < chunks + 50) runs.push_back(take(8));
  EXPECT_GT(SliceGuards::count(), SliceGuards::kMost - 2);
  EXPECT_LE(SliceGuards::count(), SliceGuards::kMost);
  EXPECT_EQ(Chunk::of(*runs.back().first).guards, 0u);
  fill_slices(base(runs.back()), 8, 1);
  EXPECT_TRUE(pool.is_valid());
}

TEST_F(SliceGuarded, WhereTheSystemRefusesThemThereAreNone) {
  HM_NEEDS(kFiltersCalls);
  auto body = [&] {
    if (!forbid_protection()) return false;
    std::vector<SlicePool::Run> runs = fill(kChunksInRegion);
    for (const SlicePool::Run& run : runs) memset(base(run), 1, kSlice);
    return guards_of(chunks_of(runs)) == 0 && SliceGuards::count() == 0 && pool.is_valid() &&
           runs.size() == slices_of_chunks(kChunksInRegion);
  };
  EXPECT_TRUE(child_succeeds(body));
}

TEST_F(SliceGuarded, WithoutThemThereAreHugePages) {
  options.slice_guards = 0;
  options.huge_pages_after = kChunk;
  std::vector<SlicePool::Run> runs;
  while (pool.chunks() < 5) fill_slices(base(runs.emplace_back(take(1))), 1, 1);
  EXPECT_EQ(SliceGuards::count(), 0u);
  size_t huge = 0;
  for (const Chunk* chunk : chunks_of(runs)) huge += chunk->huge;
  EXPECT_GT(huge, 0u);
}

TEST_F(SliceGuarded, WithThemThereAreNone) {
  options.huge_pages_after = kChunk;
  std::vector<SlicePool::Run> runs;
  while (pool.chunks() < 20) fill_slices(base(runs.emplace_back(take(1))), 1, 1);
  for (const Chunk* chunk : chunks_of(runs)) EXPECT_FALSE(chunk->huge);
}

// The child of a fork hands out none that it cannot touch, wherever another thread was.
TEST_F(SliceGuarded, AForkThatCutsOffTheirMakingLeavesNoneUnnoticed) {
  if (!HM_STEPS) GTEST_SKIP() << "this machine does not trap after each instruction";
  take(1);
  Chunk& chunk = Chunk::of_region(Chunk::of(*take(1).first).region())[1];
  chunk.guards = 0;
  auto each_is_noted = [&] {
    for (size_t slice = 0; slice < kSlicesInChunk; ++slice)
      if ((chunk.guards >> slice & 1) == 0) *slice_at(chunk, slice) = 1;
    return true;
  };
  Steps steps = fork_at_every_instruction([&] { SliceGuards::make(chunk); }, each_is_noted, {.stride = 3});
  EXPECT_GT(steps.forks, 20u);
  EXPECT_EQ(steps.failed, 0u);
}

TEST_F(SliceGuarded, AWriteBehindASuperblockIsAFaultThere) {
  std::vector<SlicePool::Run> runs = fill(3);
  for (const SlicePool::Run& run : runs) {
    Chunk& chunk = Chunk::of(*run.first);
    size_t next = run.first->slice() % kSlicesInChunk + 1;
    if (next == kSlicesInChunk || (chunk.guards >> next & 1) == 0) continue;
    write_to(base(run), kSlice - 1, 1);
    EXPECT_EXIT(write_to(base(run), kSlice, 1), kFault, "");
    EXPECT_EXIT(hm_free(base(run) + kSlice), kAborted, "double free, or never a block");
    return;
  }
  FAIL() << "no guard behind any of " << runs.size() << " slices";
}

TEST(SliceGuards, AFreeOfAnAddressInOneSaysSo) {
  std::vector<void*> blocks = allocate_many(500, 4000);
  for (void* block : blocks) {
    Slice& slice = Slice::of(address_of(block));
    uint64_t guards = Chunk::of(slice).guards;
    if (guards == 0) continue;
    char* inside = slice_at(Chunk::of(slice), static_cast<size_t>(std::countr_zero(guards))) + 64;
    EXPECT_EXIT(hm_free(inside), kAborted, "never a block\n  no block is there, but a guard between superblocks");
    break;
  }
  free_all(blocks);
}

// A fork may come at any instruction of another thread's operation on huge blocks.  After each of them no two descriptors
// may own the same byte, nor one that the system may give to somebody else (E5); and wherever a descriptor has changed, a
// child is forked, repairs, and goes on.
#include "at_every_instruction.h"

#if HM_STEPS

#include <sys/mman.h>

#include "base/os_pages.h"
#include "large/extent_table.h"
#include "large/runs.h"
#include "pages/options.h"

using namespace hm;
using namespace hm::test;

namespace {

struct Held {
  char* block;
  size_t size;
};

bool is_mapped(char* page) {
  unsigned char in_memory;
  return mincore(page, os::page_size(), &in_memory) == 0;
}

// What is wrong, or null.
const char* wrong_owners() {
  const char* wrong = nullptr;
  extent_table.for_each([&](Extent& one) {
    if (one.bytes() == 0) return;
    if (!is_mapped(one.start()) || !is_mapped(one.end() - os::page_size())) wrong = "owns what is not mapped";
    extent_table.for_each([&](Extent& other) {
      if (&one != &other && other.bytes() > 0 && one.start() < other.end() && other.start() < one.end())
        wrong = "two own the same bytes";
    });
  });
  return wrong;
}

uint64_t signature() {
  uint64_t hash = 1;
  extent_table.for_each([&](Extent& extent) {
    for (uint64_t value : {address_of(&extent), uint64_t(extent.state()), address_of(extent.start()), extent.bytes(),
                           extent.dirty, extent.slack, extent.size, address_of(extent.next), address_of(extent.previous)})
      hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  });
  return hash;
}

constexpr size_t kStride = 128 * kKiB;  // of the pages that are looked at

void mark(char* block, size_t size) {
  for (size_t at = 0; at < size; at += kStride) memcpy(block + at, &block, sizeof block);
}
bool is_marked(char* block, size_t size) {
  for (size_t at = 0; at < size; at += kStride)
    if (memcmp(block + at, &block, sizeof block) != 0) return false;
  return true;
}
bool is_zero_from(char* block, size_t at, size_t size) {
  for (at = align_up(at, kStride); at < size; at += kStride)
    if (!is_zero(block + at, sizeof block)) return false;
  return true;
}

struct HugeRepair : testing::Test {
  // What an operation that is being stepped through has nothing to do with.
  std::vector<Held> held;
  HugeRepair() {
    options.decay_ms = 3'600'000;  // a busy machine's pause is none of the program's
    hold(3 * kMiB);
  }

  static char* get(size_t size, size_t alignment = kGranule) {
    return static_cast<char*>(allocate_huge(size, alignment, true).block);
  }
  static bool put(char* block) {
    Extent* extent = huge_extent(block);
    return extent != nullptr && free_huge(*extent);
  }
  static char* resize(char* block, size_t size) { return static_cast<char*>(resize_huge(*huge_extent(block), size)); }
  void hold(size_t size) {
    held.push_back({get(size), size});
    mark(held.back().block, size);
  }
  static char* recurring(size_t size) {
    put(get(size));
    return get(size);
  }
  // A kept extent, written to all over.
  static char* keep(size_t size) {
    char* block = recurring(size);
    mark(block, size);
    put(block);
    return block;
  }

  // In the child: uses all that is kept and more.  What is wrong, or null.
  static const char* use_all() {
    Held blocks[8];
    for (size_t i = 0; i < 8; ++i) {
      size_t size = (i % 3 + 1) * 2 * kMiB - i % 2 * 5000;
      FreshBlock got = allocate_huge(size, kGranule, true);
      if (got.block == nullptr) return "no memory";
      blocks[i] = {static_cast<char*>(got.block), size};
      if (!is_zero_from(blocks[i].block, got.dirty, size)) return "not zero";
      mark(blocks[i].block, size);
    }
    for (auto [block, size] : blocks)
      if (!is_marked(block, size) || !put(block)) return "a new block is not whole";
    return nullptr;
  }
  const char* life_after_repair() const {
    huge_lock().lock();
    huge_lock().unlock();
    huge_repair();
    if (!huge_is_valid()) return "not valid after the repair";
    if (const char* wrong = wrong_owners()) return wrong;
    for (int round = 0; round < 2; ++round) {
      if (const char* wrong = use_all()) return wrong;
      if (!huge_is_valid()) return "not valid after use";
      purge_huge_blocks(true);
    }
    for (auto [block, size] : held)
      if (!is_marked(block, size) || !put(block)) return "an old block is not whole";
    return huge_is_valid() ? wrong_owners() : "not valid in the end";
  }

  // The operation must change descriptors.
  void step_through(const char* name, const std::function<void()>& operation) {
    const char* complaint = nullptr;
    uint64_t last = signature();
    auto has_changed = [&] {
      if (complaint == nullptr) complaint = wrong_owners();
      uint64_t now = signature();
      return std::exchange(last, now) != now;
    };
    auto child_is_well = [&] {
      const char* wrong = nullptr;  // by a thread that knows nothing of the operation
      std::thread([&] { wrong = life_after_repair(); }).join();
      if (wrong != nullptr) fprintf(stderr, "a child: %s\n", wrong);
      return wrong == nullptr;
    };
    Steps steps = fork_at_every_instruction(operation, child_is_well, {.worth_a_fork = has_changed});
    EXPECT_EQ(complaint, nullptr) << name << ": " << complaint;
    EXPECT_EQ(steps.failed, 0u) << name << ": the child of the fork at this instruction failed";
    EXPECT_GE(steps.forks, 2u) << name;
    EXPECT_TRUE(huge_is_valid()) << name;
  }
};

}  // namespace

TEST_F(HugeRepair, FromMapToUnmap) {
  char* block = nullptr;
  step_through("map", [&] { block = get(5 * kMiB); });
  mark(block, 5 * kMiB);
  step_through("unmap", [&] { put(block); });
  step_through("aligned", [&] { block = get(5 * kMiB, 8 * kMiB); });
}

TEST_F(HugeRepair, KeepTakeCutAndJoin) {
  char* block = recurring(16 * kMiB);
  mark(block, 16 * kMiB);
  step_through("keep", [&] { put(block); });
  char* parts[4];
  for (char*& part : parts) step_through("take", [&] { part = get(4 * kMiB - 5000); });
  for (char* part : parts) mark(part, 4 * kMiB - 5000);
  step_through("keep beside none", [&] { put(parts[1]); });
  step_through("keep beside none", [&] { put(parts[3]); });
  step_through("join on both sides", [&] { put(parts[2]); });
  step_through("join with the next", [&] { put(parts[0]); });
  EXPECT_EQ(get(16 * kMiB), block);
  put(block);
  step_through("purge", [&] { purge_huge_blocks(true); });
}

TEST_F(HugeRepair, SlackIsNotedAndPurged) {
  char *block = keep(8 * kMiB), *smaller = nullptr;
  hold(7 * kMiB + 5000);  // with slack that is not the operation's
  ASSERT_EQ(held[1].block, block);
  keep(8 * kMiB);
  step_through("slack", [&] { smaller = get(7 * kMiB + 5000); });
  EXPECT_EQ(huge_gauges().kept, 2 * (kMiB - align_up(5000, os::page_size())));
  step_through("purge of slack", [&] { purge_huge_blocks(true); });
  EXPECT_EQ(huge_gauges().kept, 0u);
}

TEST_F(HugeRepair, GrowShrinkStretchAndMove) {
  keep(16 * kMiB);
  char *block = get(3 * kMiB), *grown = nullptr;
  step_through("grow into a kept one", [&] { grown = resize(block, 9 * kMiB); });
  ASSERT_EQ(grown, block);
  step_through("shrink", [&] { resize(block, 5 * kMiB); });
  put(block);
  step_through("stretch", [&] { block = get(40 * kMiB); });
  mmap(block + 40 * kMiB, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  step_through("move", [&] { grown = resize(block, 50 * kMiB); });
  EXPECT_NE(grown, block);
}

TEST_F(HugeRepair, AddressesBehindBlocksGoBack) {
  keep(8 * kMiB);
  hold(7 * kMiB + 5000);  // with slack
  char *block = get(kMiB + 1), *grown = nullptr;
  step_through("unmap behind", [&] { unmap_behind_huge_blocks(); });
  EXPECT_EQ(huge_gauges().mapped, huge_gauges().active);
  EXPECT_EQ(huge_gauges().kept, 0u);
  step_through("grow", [&] { grown = resize(block, 3 * kMiB); });
  EXPECT_NE(grown, nullptr);
}

// E4, whenever a block is live and nobody has the lock: what lies behind it another thread may unmap, and the system map there
// what is not ours.
TEST_F(HugeRepair, NothingIsPurgedBehindALiveBlockWithoutTheLock) {
  char* block = get(8 * kMiB - 5000);
  mark(block, 8 * kMiB - 5000);
  const Extent& extent = *huge_extent(block);
  size_t looks = 0, bad = 0;
  auto look = [&] {
    TryLockGuard nobody(huge_lock());
    if (nobody.holds() && extent.is_live()) ++looks, bad += extent.dirty > extent.taken() && extent.slack == 0;
    return false;
  };
  fork_at_every_instruction([&] { resize(block, 6 * kMiB + 1); }, [] { return true; }, {.worth_a_fork = look});
  EXPECT_EQ(huge_capacity(extent), 6 * kMiB + os::page_size());
  EXPECT_GT(looks, 0u);
  EXPECT_EQ(bad, 0u);
}

TEST_F(HugeRepair, APurgeHoldsOneExtentAtATime) {
  char* blocks[6];
  for (char*& block : blocks) block = get(3 * kMiB, 2 * kChunk);  // mappings of their own
  for (int i = 0; i < 6; ++i) put(get(24 * kMiB));
  for (char* block : blocks) put(block);
  ASSERT_GE(huge_gauges().kept, 16 * kMiB);
  size_t most = 0;
  auto look = [&] {
    size_t held_bytes = 0;
    extent_table.for_each([&](Extent& each) { held_bytes += each.state() == ExtentState::kHeld ? each.bytes() : 0; });
    most = std::max(most, held_bytes);
    return false;
  };
  fork_at_every_instruction([&] { purge_huge_blocks(true); }, [] { return true; }, {.worth_a_fork = look});
  EXPECT_EQ(huge_gauges().kept, 0u);
  EXPECT_GE(most, 4 * kMiB);
  EXPECT_LE(most, 4 * kMiB);
}

// For want of mappings, say.
TEST_F(HugeRepair, WhatIsNotUnmappedIsTriedOnce) {
  char* blocks[3];
  for (char*& block : blocks) block = get(3 * kMiB, 2 * kChunk);  // mappings of their own
  for (int i = 0; i < 6; ++i) put(get(24 * kMiB));
  for (char* block : blocks) put(block);
  size_t kept = huge_gauges().kept;
  ASSERT_GE(kept, 12 * kMiB);
  uint64_t before = os::calls();
  munmaps_to_refuse = 1;
  purge_huge_blocks(true);
  EXPECT_EQ(munmaps_to_refuse, 0u);
  EXPECT_LE(os::calls() - before, 8u) << "three extents or four, one of them refused and purged";
  EXPECT_GT(huge_gauges().kept, 0u);
  EXPECT_LE(huge_gauges().kept, 4 * kMiB) << "the others went";
}

// A signal handler of the thread that is in the operation forks while another thread has the lock: the child repairs, and goes
// on with the operation.
TEST_F(HugeRepair, WhoForksInAHandlerGoesOn) {
  auto repair = [] {
    {
      TryLockGuard free(huge_lock());
      if (!free.holds()) return false;  // it has the lock itself
    }
    huge_repair();
    return true;
  };
  auto goes_on = [&](const char* name, const std::function<void()>& operation, const std::function<bool()>& check) {
    auto has_changed = [last = signature()]() mutable {
      uint64_t now = signature();
      return std::exchange(last, now) != now;
    };
    Steps steps = fork_at_every_instruction(operation, check, {.worth_a_fork = has_changed, .repair = repair});
    EXPECT_EQ(steps.failed, 0u) << name;
    EXPECT_GE(steps.forks, 2u) << name;
  };
  auto counts_all = [&](size_t size) {
    HugeGauges now = huge_gauges();
    return huge_is_valid() && now.blocks == 2 && now.active == 3 * kMiB + align_up(size, os::page_size());
  };
  char* kept = keep(6 * kMiB);
  mmap(kept + 6 * kMiB, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
       0);  // it cannot grow in place
  FreshBlock got{};
  goes_on(
      "stretch", [&] { got = allocate_huge(10 * kMiB, kGranule, true); },
      [&] {
        auto* block = static_cast<char*>(got.block);
        return counts_all(10 * kMiB) && is_zero_from(block, got.dirty, 10 * kMiB) && put(block) && huge_gauges().blocks == 1;
      });
  auto *block = static_cast<char*>(got.block), *grown = block;
  mmap(block + 10 * kMiB, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  goes_on(
      "move", [&] { grown = resize(block, 20 * kMiB); },
      [&] { return grown != nullptr && counts_all(20 * kMiB) && put(grown) && huge_gauges().active == 3 * kMiB; });
}

#endif

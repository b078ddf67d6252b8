#include "core/superblock.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "core/superblock_pool.h"
#include "support.h"

using namespace hm;
using test::all_classes;
using test::fresh_superblock;

namespace {

uintptr_t slice_start(const Superblock& sb) { return address_of(const_cast<Superblock&>(sb).base()); }

// Gives every block that `to` holds back, so that the superblock may be released.
void give_back(Superblock& sb, const std::vector<void*>& blocks) {
  for (void* block : blocks) sb.states[BlockPlace(sb, address_of(block)).index()].give_back();
}

std::vector<void*> sweep_all(Superblock& sb, size_t want) {
  std::vector<void*> all, burst(want + kSweepGroup);
  while (size_t got = sb.sweep(burst.data(), want)) {
    EXPECT_LE(got, want + kSweepGroup - 1);
    all.insert(all.end(), burst.begin(), burst.begin() + static_cast<long>(got));
  }
  return all;
}

size_t slice_of(uintptr_t address) { return address / kSlice % kSlicesInRegion; }

}  // namespace

TEST(Superblock, FormatMakesAValidEmptyOne) {
  for (ClassIndex c : all_classes()) {
    Superblock& sb = fresh_superblock(c);
    EXPECT_TRUE(sb.is_valid());
    EXPECT_TRUE(sb.is_empty());
    EXPECT_EQ(sb.free_blocks(), blocks_of(c));
    EXPECT_EQ(sb.class_index(), c);
    EXPECT_EQ(sb.block_size, size_of(c));
    release(sb);
  }
}

TEST(Superblock, EveryAddressFindsItsDescriptor) {
  for (ClassIndex c : all_classes()) {
    Superblock& sb = fresh_superblock(c);
    for (size_t slice = 0; slice < slices_of(c); ++slice)
      for (size_t offset : {size_t{0}, size_t{1}, kSlice / 2, kSlice - 1}) {
        Superblock& found = Superblock::of(slice_start(sb) + slice * kSlice + offset);
        EXPECT_EQ(&found, &sb + slice);
        if (slice > 0) { EXPECT_EQ(found.kind(), SliceKind::kBlocksTail); }
      }
    release(sb);
  }
}

// The multiplication of the fast path must agree with the division, for every offset: quotient, and remainder zero.
TEST(Superblock, InverseDividesExactly) {
  for (ClassIndex c : all_classes()) {
    Superblock& sb = fresh_superblock(c);
    for (size_t offset = 0; offset < slices_of(c) * kSlice; ++offset) {
      uintptr_t address = slice_start(sb) + offset;
      BlockPlace place(Superblock::of(address), address);
      ASSERT_EQ(place.exact(), offset % sb.block_size == 0) << size_of(c) << " " << offset;
      ASSERT_EQ(place.index(), offset / sb.block_size);
      ASSERT_EQ(Superblock::of(address).states, sb.states);
    }
    release(sb);
  }
}

TEST(Superblock, HarvestFindsEveryBlockOnce) {
  for (ClassIndex c : all_classes())
    for (size_t want : {1, 7, 64, 200}) {
      Superblock& sb = fresh_superblock(c);
      std::vector<void*> all = sweep_all(sb, want);
      EXPECT_EQ(std::set<void*>(all.begin(), all.end()).size(), blocks_of(c));
      ASSERT_EQ(all.size(), blocks_of(c));
      for (void* block : all) {
        size_t offset = address_of(block) - slice_start(sb);
        ASSERT_EQ(offset % size_of(c), 0u);
        ASSERT_LT(offset / size_of(c), blocks_of(c));
      }
      EXPECT_EQ(sb.free_blocks(), 0u);
      EXPECT_TRUE(sb.is_valid());
      give_back(sb, all);
      EXPECT_TRUE(sb.is_empty());
      release(sb);
    }
}

// A stack that takes a group pops its lowest address first.
TEST(Superblock, HarvestEndsEachGroupWithItsLowestAddress) {
  for (ClassIndex c : all_classes()) {
    if (size_of(c) < kLine) continue;
    Superblock& sb = fresh_superblock(c);
    std::vector<void*> group(2 * kSweepGroup), all;
    for (size_t first = 0; first < blocks_of(c); first += kSweepGroup) {
      size_t got = sb.sweep(group.data(), 1);
      ASSERT_EQ(got, std::min(kSweepGroup, blocks_of(c) - first));
      for (size_t i = 0; i < got; ++i) ASSERT_EQ(address_of(group[i]), slice_start(sb) + (first + got - 1 - i) * size_of(c));
      all.insert(all.end(), group.begin(), group.begin() + static_cast<long>(got));
    }
    give_back(sb, all);
    release(sb);
  }
}

// Neighbours in time, which two threads may come to write, do not share a line.
TEST(Superblock, HarvestSpreadsBlocksThatAreSmallerThanALine) {
  for (ClassIndex c : all_classes()) {
    if (size_of(c) >= kLine) continue;
    Superblock& sb = fresh_superblock(c);
    std::vector<void*> group(2 * kSweepGroup);
    ASSERT_EQ(sb.sweep(group.data(), 1), kSweepGroup);
    group.resize(kSweepGroup);
    EXPECT_EQ(address_of(group.back()), slice_start(sb)) << "the lowest address comes first";
    for (size_t i = 0; i < kSweepGroup; ++i)
      for (size_t later = 1; later < 8 && i + later < kSweepGroup; ++later) {
        uintptr_t a = address_of(group[i]), b = address_of(group[i + later]), end = std::min(a, b) + size_of(c) - 1;
        ASSERT_LT(end / kLine, std::max(a, b) / kLine) << size_of(c) << " bytes, " << i << " and " << i + later;
      }
    std::sort(group.begin(), group.end());
    EXPECT_EQ(std::set<void*>(group.begin(), group.end()).size(), kSweepGroup);
    EXPECT_EQ(address_of(group.back()), slice_start(sb) + (kSweepGroup - 1) * size_of(c)) << "and no other group";
    give_back(sb, group);
    release(sb);
  }
}

// Where a block of the group is taken the others come by address.
TEST(Superblock, HarvestDoesNotSpreadWhatIsLeftOfAGroup) {
  ClassIndex c = class_of(16);
  Superblock& sb = fresh_superblock(c);
  sb.states[5].mark_taken();
  std::vector<void*> group(2 * kSweepGroup);
  ASSERT_EQ(sb.sweep(group.data(), 1), kSweepGroup - 1);
  group.resize(kSweepGroup - 1);
  EXPECT_TRUE(std::is_sorted(group.rbegin(), group.rend()));
  EXPECT_EQ(std::count(group.begin(), group.end(), reinterpret_cast<void*>(slice_start(sb) + 5 * size_of(c))), 0);
  sb.states[5].give_back();
  give_back(sb, group);
  release(sb);
}

TEST(Superblock, HarvestTakesFreeBlocksOnly) {
  std::mt19937 random(test::kSeed);
  for (ClassIndex c : all_classes())
    for (unsigned sparse : {2u, 9u, 64u}) {
      Superblock& sb = fresh_superblock(c);
      std::vector<void*> all = sweep_all(sb, 64), freed;
      for (void* block : all)
        if (random() % sparse == 0) freed.push_back(block);
      give_back(sb, freed);
      EXPECT_EQ(sb.free_blocks(), freed.size());
      EXPECT_EQ(sb.is_empty(), freed.size() == all.size());
      sb.cursor = 0;
      std::vector<void*> again = sweep_all(sb, 13);
      EXPECT_EQ(std::set<void*>(again.begin(), again.end()), std::set<void*>(freed.begin(), freed.end()));
      EXPECT_EQ(again.size(), freed.size());
      give_back(sb, all);
      release(sb);
    }
}

// In any order the last free, and no other, is told that it is; and whoever frees in a row seldom needs a new witness.
TEST(Superblock, TheLastOfItsBlocksKnowsThatItIs) {
  using Order = void (*)(std::vector<size_t>&);
  struct {
    Order order;
    size_t most_searches;
  } cases[] = {{[](auto&) {}, 2},
               {[](auto& all) { std::reverse(all.begin(), all.end()); }, 3},
               {[](auto& all) { std::shuffle(all.begin(), all.end(), std::minstd_rand(17)); }, SIZE_MAX}};
  for (ClassIndex c : all_classes())
    for (auto [order, most_searches] : cases) {
      Superblock& sb = fresh_superblock(c);
      sweep_all(sb, blocks_of(c));
      sb.watch(true);
      std::vector<size_t> all(blocks_of(c));
      std::iota(all.begin(), all.end(), size_t{0});
      order(all);
      size_t searches = 0;
      for (size_t i = 0; i < all.size(); ++i) {
        BlockState& state = sb.states[all[i]];
        searches += !sb.has_witness_but(state);
        ASSERT_EQ(!sb.has_witness_but(state) && sb.all_free_but(state), i + 1 == all.size()) << size_of(c) << " " << i;
        state.give_back();
      }
      EXPECT_LE(searches, most_searches) << size_of(c);
      release(sb);
    }
}

TEST(Superblock, NobodyIsToldWhileAHeapHasIt) {
  for (ClassIndex c : all_classes()) {
    Superblock& sb = fresh_superblock(c);
    for (size_t slice = 0; slice < slices_of(c); ++slice) {
      EXPECT_TRUE((&sb)[slice].has_witness_but(sb.states[0]));
      sb.watch(true);
      EXPECT_FALSE((&sb)[slice].has_witness_but(sb.states[0]));
      sb.watch(false);
    }
    release(sb);
  }
}

// A consumer right behind a producer: not at every block.
TEST(Superblock, WhoFreesCloseBehindWhoAllocatesSeldomSearches) {
  ClassIndex c = class_of(16);
  Superblock& sb = fresh_superblock(c);
  sb.watch(true);
  std::vector<void*> burst(2 * kSweepGroup);
  size_t searches = 0;
  while (size_t got = sb.sweep(burst.data(), 1))
    for (size_t i = 0; i < got; ++i) {
      BlockState& state = sb.states[sb.cursor - got + i];
      if (!sb.has_witness_but(state)) ++searches, sb.all_free_but(state);
      state.give_back();
    }
  EXPECT_LE(searches, 2 * blocks_of(c) / kSweepGroup + 2);
  release(sb);
}

TEST(Superblock, AnExhaustedSweepStaysExhausted) {
  Superblock& sb = fresh_superblock(ClassIndex{3});
  std::vector<void*> all = sweep_all(sb, 64);
  give_back(sb, all);
  void* to[2 * kSweepGroup];
  EXPECT_EQ(sb.sweep(to, 64), 0u) << "only the next holder starts a new sweep";
  EXPECT_TRUE(sb.is_valid());
  release(sb);
}

// S3.  The fast path may look at the state of a block that would start in the unused end of a slice.
TEST(Superblock, BlocksThatDoNotExistStayFree) {
  for (ClassIndex c : all_classes()) {
    Superblock& sb = fresh_superblock(c);
    std::vector<void*> all = sweep_all(sb, 64);
    for (size_t i = blocks_of(c); i * size_of(c) < slices_of(c) * kSlice; ++i) EXPECT_TRUE(sb.states[i].is_free());
    for (size_t i = blocks_of(c); i < align_up(blocks_of(c), 8); ++i) EXPECT_TRUE(sb.states[i].is_free());
    give_back(sb, all);
    release(sb);
  }
}

// The areas of any two slices of a region are disjoint, whatever classes they hold, and end before the first block.
TEST(Superblock, StateAreasOfNeighboursDoNotOverlap) {
  for (ClassIndex c : all_classes())
    for (size_t round = 0; round < 2; ++round) {
      std::vector<Superblock*> filled;
      std::vector<std::pair<uintptr_t, uintptr_t>> areas;
      for (size_t n = 0; n < 24; ++n) {
        ClassIndex mixed = round == 0 ? c : ClassIndex((index_of(c) + n * 7) % kClasses);
        Superblock& sb = fresh_superblock(mixed);
        uintptr_t begin = address_of(sb.states);
        areas.emplace_back(begin, begin + align_up(slices_of(mixed) * kSlice / size_of(mixed) + 1, 8) * 1);
        EXPECT_EQ(begin % 8, 0u);
        EXPECT_GE(begin % kRegion, kLineStates);
        EXPECT_LE((areas.back().second - 1) % kRegion, kMetaSlices * kSlice - 1);
        filled.push_back(&sb);
      }
      std::sort(areas.begin(), areas.end());
      for (size_t n = 1; n < areas.size(); ++n) {
        // The last state of an exact fit does not exist, so a neighbour may begin there.
        EXPECT_LE(areas[n - 1].second - 8, areas[n].first);
      }
      for (Superblock* sb : filled) release(*sb);
    }
}

TEST(Superblock, IsValidSeesDamage) {
  Superblock& sb = fresh_superblock(class_of(80));
  auto damaged = [&](auto& field, auto value) {
    auto kept = field;
    field = value;
    bool valid = sb.is_valid();
    field = kept;
    return !valid;
  };
  EXPECT_TRUE(damaged(sb.block_size, 96u));
  EXPECT_TRUE(damaged(sb.blocks, sb.blocks + 1));
  EXPECT_TRUE(damaged(sb.inverse, 0u));
  EXPECT_TRUE(damaged(sb.cursor, 100000u));
  EXPECT_TRUE(damaged(sb.states, sb.states + 64));
  sb.states[sb.blocks].mark_taken();
  EXPECT_FALSE(sb.is_valid());
  sb.states[sb.blocks].give_back();
  EXPECT_TRUE(sb.is_valid());
  release(sb);
  EXPECT_FALSE(sb.is_valid());
}

// In no two pages, of whatever size, that a guard and something else share.
TEST(Superblock, MetadataLiesBetweenGuards) {
  Superblock& sb = fresh_superblock(ClassIndex{0});
  auto accessible = test::accessible_bytes(sb.region(), sb.region() + kRegion);
  ASSERT_EQ(accessible.size(), 2u);
  EXPECT_EQ(accessible[0].first, sb.region() + kDescriptors);
  EXPECT_EQ(accessible[0].second, sb.region() + kSecondGuard);
  EXPECT_EQ(accessible[1].first, sb.region() + kMetaSlices * kSlice);
  EXPECT_EQ(accessible[1].second, sb.region() + kRegion);
  for (size_t at : {kDescriptors, kSecondGuard, kMetaSlices * kSlice}) EXPECT_EQ(at % (64 * kKiB), 0u);
  release(sb);
}

// A pointer into a region's metadata finds a slice without blocks: inverse zero keeps it off the fast path.
TEST(Superblock, MetadataSlicesHoldNoBlocks) {
  Superblock& sb = fresh_superblock(ClassIndex{0});
  EXPECT_GE(slice_of(slice_start(sb)), kMetaSlices);
  for (uintptr_t address = sb.region(); address < sb.region() + kMetaSlices * kSlice; address += 4096) {
    Superblock& found = Superblock::of(address);
    EXPECT_EQ(found.inverse, 0u);
    EXPECT_EQ(found.kind(), SliceKind::kUnused);
  }
  release(sb);
}

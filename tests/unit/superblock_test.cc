#include "core/superblock.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "core/superblock_pool.h"
#include "support.h"

using namespace hm;
using namespace hm::test;

namespace {

uintptr_t start_of(Superblock& sb) { return address_of(sb.base()); }
uintptr_t end_of(Superblock& sb) { return start_of(sb) + slices_of(sb.class_index()) * kSlice; }

// A fresh superblock of each class.
void for_each_class(const std::function<void(ClassIndex, Superblock&)>& test) {
  for (ClassIndex c : all_classes()) {
    SCOPED_TRACE(size_of(c));
    Superblock& sb = fresh_superblock(c);
    test(c, sb);
    drop(sb);
  }
}

std::vector<void*> sweep(Superblock& sb, size_t want) {
  std::vector<void*> burst(want + sweep_surplus(sb.class_index()));
  size_t got = sb.sweep(burst.data(), want);
  EXPECT_LE(got, burst.size());
  burst.resize(got);
  return burst;
}
std::vector<void*> sweep_all(Superblock& sb, size_t want = kSweepGroup) {
  std::vector<void*> all;
  for (auto burst = sweep(sb, want); !burst.empty(); burst = sweep(sb, want))
    all.insert(all.end(), burst.begin(), burst.end());
  return all;
}
std::vector<void*> sorted(std::vector<void*> blocks) {
  std::sort(blocks.begin(), blocks.end());
  return blocks;
}
void give_back(Superblock& sb, const std::vector<void*>& blocks) {
  for (void* block : blocks) sb.states[BlockPlace(sb, address_of(block)).index()].give_back();
}

}  // namespace

TEST(Superblock, FormatMakesAValidEmptyOne) {
  for_each_class([](ClassIndex c, Superblock& sb) {
    EXPECT_TRUE(sb.is_valid());
    EXPECT_TRUE(sb.is_empty());
    EXPECT_EQ(sb.free_blocks(), blocks_of(c));
    EXPECT_EQ(sb.class_index(), c);
    EXPECT_EQ(sb.block_size, size_of(c));
  });
}

// The multiplication of the fast path must agree with the division, for every offset: quotient, and remainder zero.
TEST(Superblock, EveryAddressFindsItsDescriptorAndItsBlock) {
  for_each_class([](ClassIndex c, Superblock& sb) {
    for (uintptr_t address = start_of(sb); address < end_of(sb); ++address) {
      size_t offset = address - start_of(sb);
      Superblock& found = Superblock::of(address);
      ASSERT_EQ(&found, &sb + offset / kSlice);
      ASSERT_EQ(found.kind(), offset < kSlice ? SliceKind::kBlocks : SliceKind::kBlocksTail);
      ASSERT_EQ(found.states, sb.states);
      BlockPlace place(found, address);
      ASSERT_EQ(place.exact(), offset % size_of(c) == 0) << offset;
      ASSERT_EQ(place.index(), offset / size_of(c));
    }
  });
}

TEST(Superblock, ASweepFindsEveryBlockOnce) {
  for (size_t want : {1, 7, 64, 200})
    for_each_class([=](ClassIndex c, Superblock& sb) {
      auto all = sorted(sweep_all(sb, want));
      ASSERT_EQ(all.size(), blocks_of(c));
      for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(address_of(all[i]), start_of(sb) + i * size_of(c));
      EXPECT_EQ(sb.free_blocks(), 0u);
      EXPECT_TRUE(sb.is_valid());
      give_back(sb, all);
      EXPECT_TRUE(sb.is_empty());
      EXPECT_EQ(sweep(sb, 64).size(), 0u) << "only the next holder starts a new sweep";
    });
}

// A stack that takes them pops the lowest address first.  Of blocks that few fit a superblock of, no more are taken than
// are wanted: what waits in the cache of a thread serves no other.
TEST(Superblock, ASweepOfFreeBlocksTakesThoseNextInOrder) {
  for_each_class([](ClassIndex c, Superblock& sb) {
    if (size_of(c) < kLine) return;
    for (size_t want : {1, 3, 8, 21, 64}) {
      size_t first = sb.cursor, rest = blocks_of(c) - first;
      size_t whole = blocks_of(c) > kSweepGroup ? align_up(want, StateGroup::kBlocks) : want;
      auto burst = sweep(sb, want);
      ASSERT_EQ(burst.size(), std::min(whole, rest)) << want;
      ASSERT_TRUE(sb.is_valid()) << want;
      for (size_t i = 0; i < burst.size(); ++i)
        ASSERT_EQ(address_of(burst[i]), start_of(sb) + (first + burst.size() - 1 - i) * size_of(c)) << want;
    }
  });
}

// Neighbours in time, which two threads may come to write, do not share a line.
TEST(Superblock, ASweepSpreadsBlocksThatAreSmallerThanALine) {
  for_each_class([](ClassIndex c, Superblock& sb) {
    if (size_of(c) >= kLine) return;
    auto group = sweep(sb, 1);
    ASSERT_EQ(group.size(), kSweepGroup);
    EXPECT_EQ(address_of(group.back()), start_of(sb)) << "the lowest address comes first";
    for (size_t i = 0; i < kSweepGroup; ++i)
      for (size_t later = i + 1; later < std::min(i + 8, kSweepGroup); ++later) {
        auto [low, high] = std::minmax({address_of(group[i]), address_of(group[later])});
        ASSERT_LT((low + size_of(c) - 1) / kLine, high / kLine) << i << " and " << later;
      }
    group = sorted(group);
    for (size_t i = 0; i < kSweepGroup; ++i) ASSERT_EQ(address_of(group[i]), start_of(sb) + i * size_of(c));
  });
}

TEST(Superblock, ASweepDoesNotGoBack) {
  for_each_class([](ClassIndex c, Superblock& sb) {
    if (blocks_of(c) > kSweepGroup) return;
    auto first = sweep(sb, 1);
    give_back(sb, first);
    auto second = sweep(sb, 1);
    ASSERT_EQ(second, std::vector<void*>{sb.start + size_of(c)});
    give_back(sb, second);
  });
}

TEST(Superblock, ASweepForOneThreadAloneKeepsTheOrder) {
  for_each_class([](ClassIndex c, Superblock& sb) {
    std::vector<void*> burst(2 * kSweepGroup);
    burst.resize(sb.sweep(burst.data(), 1, true));
    for (size_t i = 0; i < burst.size(); ++i)
      ASSERT_EQ(address_of(burst[i]), start_of(sb) + (burst.size() - 1 - i) * size_of(c));
  });
}

TEST(Superblock, ASweepDoesNotSpreadWhatIsLeftOfAGroup) {
  Superblock& sb = fresh_superblock(class_of(16));
  sb.states[5].mark_taken();
  auto group = sweep(sb, 1);
  ASSERT_EQ(group.size(), kSweepGroup - 1);
  EXPECT_TRUE(std::is_sorted(group.rbegin(), group.rend()));
  EXPECT_EQ(std::count(group.begin(), group.end(), sb.start + 5 * 16), 0);
}

TEST(Superblock, ASweepTakesFreeBlocksOnly) {
  std::mt19937 random(kSeed);
  for (unsigned sparse : {2u, 9u, 64u})
    for_each_class([&](ClassIndex c, Superblock& sb) {
      std::vector<void*> freed;
      for (void* block : sweep_all(sb))
        if (random() % sparse == 0) freed.push_back(block);
      give_back(sb, freed);
      EXPECT_EQ(sb.free_blocks(), freed.size());
      EXPECT_EQ(sb.is_empty(), freed.size() == blocks_of(c));
      sb.cursor = 0;
      EXPECT_EQ(sorted(sweep_all(sb, 13)), sorted(freed));
    });
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
  for (auto [order, most_searches] : cases)
    for_each_class([=](ClassIndex c, Superblock& sb) {
      sweep_all(sb);
      sb.watch(true);
      std::vector<size_t> all(blocks_of(c));
      std::iota(all.begin(), all.end(), size_t{0});
      order(all);
      size_t searches = 0;
      for (size_t i = 0; i < all.size(); ++i) {
        BlockState& state = sb.states[all[i]];
        searches += !sb.has_witness_but(state);
        ASSERT_EQ(!sb.has_witness_but(state) && sb.all_free_but(state), i + 1 == all.size()) << i;
        state.give_back();
      }
      EXPECT_LE(searches, most_searches);
    });
}

TEST(Superblock, NobodyIsToldWhileAHeapHasIt) {
  for_each_class([](ClassIndex c, Superblock& sb) {
    for (size_t slice = 0; slice < slices_of(c); ++slice) {
      EXPECT_TRUE((&sb)[slice].has_witness_but(sb.states[0]));
      sb.watch(true);
      EXPECT_FALSE((&sb)[slice].has_witness_but(sb.states[0]));
      sb.watch(false);
    }
  });
}

// A consumer right behind a producer: not at every block.
TEST(Superblock, WhoFreesCloseBehindWhoAllocatesSeldomSearches) {
  ClassIndex c = class_of(16);
  Superblock& sb = fresh_superblock(c);
  sb.watch(true);
  size_t searches = 0;
  for (size_t got; (got = sweep(sb, 1).size()) > 0;)
    for (size_t i = 0; i < got; ++i) {
      BlockState& state = sb.states[sb.cursor - got + i];
      if (!sb.has_witness_but(state)) ++searches, sb.all_free_but(state);
      state.give_back();
    }
  EXPECT_LE(searches, 2 * blocks_of(c) / kSweepGroup + 2);
}

// S3.  The fast path may look at the state of a block that would start in the unused end of a slice.
TEST(Superblock, BlocksThatDoNotExistStayFree) {
  for_each_class([](ClassIndex c, Superblock& sb) {
    sweep_all(sb);
    size_t looked_at = std::max(divide_up(slices_of(c) * kSlice, size_of(c)), align_up(blocks_of(c), 8));
    for (size_t i = blocks_of(c); i < looked_at; ++i) EXPECT_TRUE(sb.states[i].is_free());
  });
}

// The areas of any two slices of a region are disjoint, whatever classes they hold, and end before the first block.
TEST(Superblock, StateAreasOfNeighboursDoNotOverlap) {
  for (ClassIndex c : all_classes())
    for (bool mixed : {false, true}) {
      std::vector<Superblock*> filled;
      std::vector<AddressRange> areas;
      for (size_t n = 0; n < 24; ++n) {
        ClassIndex mine = mixed ? ClassIndex((index_of(c) + n * 7) % kClasses) : c;
        filled.push_back(&fresh_superblock(mine));
        uintptr_t begin = address_of(filled[n]->states);
        areas.emplace_back(begin, begin + align_up(slices_of(mine) * kSlice / size_of(mine) + 1, 8));
        EXPECT_EQ(begin % 8, 0u);
        EXPECT_GE(begin % kRegion, kLineStates);
        EXPECT_LE((areas.back().second - 1) % kRegion, kMetaSlices * kSlice - 1);
      }
      std::sort(areas.begin(), areas.end());
      // The last state of an exact fit does not exist, so a neighbour may begin there.
      for (size_t n = 1; n < areas.size(); ++n) EXPECT_LE(areas[n - 1].second - 8, areas[n].first);
      for (Superblock* sb : filled) release(*sb);
    }
}

TEST(Superblock, IsValidSeesDamage) {
  Superblock& sb = fresh_superblock(class_of(80));
  auto is_seen = [&](auto& field, auto value) {
    auto kept = std::exchange(field, value);
    bool valid = sb.is_valid();
    field = kept;
    return !valid;
  };
  EXPECT_TRUE(is_seen(sb.block_size, 96u));
  EXPECT_TRUE(is_seen(sb.blocks, sb.blocks + 1));
  EXPECT_TRUE(is_seen(sb.inverse, 0u));
  EXPECT_TRUE(is_seen(sb.cursor, 100000u));
  EXPECT_TRUE(is_seen(sb.states, sb.states + 64));
  sb.states[sb.blocks].mark_taken();
  EXPECT_FALSE(sb.is_valid());
  sb.states[sb.blocks].give_back();
  EXPECT_TRUE(sb.is_valid());
  release(sb);
  EXPECT_FALSE(sb.is_valid());
}

// In no two pages, of whatever size, that a guard and something else share.
TEST(Superblock, MetadataLiesBetweenGuards) {
  uintptr_t region = fresh_superblock(ClassIndex{0}).region(), blocks = region + kMetaSlices * kSlice;
  EXPECT_EQ(accessible_bytes(region, region + kRegion),
            (std::vector<AddressRange>{{region + kDescriptors, region + kSecondGuard}, {blocks, region + kRegion}}));
  for (uintptr_t at : {region + kDescriptors, region + kSecondGuard, blocks}) EXPECT_EQ(at % (64 * kKiB), 0u);
}

// A pointer into a region's metadata finds a slice without blocks: inverse zero keeps it off the fast path.
TEST(Superblock, MetadataSlicesHoldNoBlocks) {
  Superblock& sb = fresh_superblock(ClassIndex{0});
  uintptr_t end = sb.region() + kMetaSlices * kSlice;
  EXPECT_GE(start_of(sb), end);
  for (uintptr_t address = sb.region(); address < end; address += 4096) {
    EXPECT_EQ(Superblock::of(address).inverse, 0u);
    EXPECT_EQ(Superblock::of(address).kind(), SliceKind::kUnused);
  }
}

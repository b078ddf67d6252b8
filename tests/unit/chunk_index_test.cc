#include "pages/chunk_index.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

using namespace hm;

namespace {

size_t longest_run_by_hand(uint64_t free) {
  size_t longest = 0, length = 0;
  for (size_t i = 0; i < 64; ++i) longest = std::max(longest, length = (free >> i & 1) != 0 ? length + 1 : 0);
  return longest;
}

struct Chunks {
  std::vector<Chunk> chunks;
  ChunkIndex index;
  explicit Chunks(const std::vector<uint64_t>& free) : chunks(free.size()) {
    for (size_t i = 0; i < free.size(); ++i) set(i, free[i]);
  }
  void set(size_t i, uint64_t free) {
    chunks[i].free = free;
    index.update(chunks[i]);
  }
  // The number of the chunk that is found; as many as there are: none.
  size_t found(size_t n) {
    Chunk* chunk = index.find(n);
    return chunk == nullptr ? chunks.size() : static_cast<size_t>(chunk - chunks.data());
  }
};

}  // namespace

TEST(ChunkIndex, KnowsTheLongestRun) {
  std::mt19937_64 random(1);
  for (uint64_t free :
       {uint64_t{0}, uint64_t{1}, uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{0} >> 1, uint64_t{0x5555555555555555}})
    EXPECT_EQ(longest_run(free), longest_run_by_hand(free)) << free;
  for (int i = 0; i < 10000; ++i) {
    uint64_t free = random() | (i % 2 != 0 ? random() | random() : 0);
    ASSERT_EQ(longest_run(free), longest_run_by_hand(free)) << free;
  }
}

TEST(ChunkIndex, FindsTheShortestRunThatSuffices) {
  Chunks three({0xff, 0xf, ~uint64_t{0}});
  EXPECT_EQ(three.found(1), 1u);
  EXPECT_EQ(three.found(4), 1u);
  EXPECT_EQ(three.found(5), 0u);
  EXPECT_EQ(three.found(9), 2u);
  EXPECT_EQ(three.found(64), 2u);
}

// Chunks with runs of up to eight lengths share a place; the one that is found has a run that suffices.
TEST(ChunkIndex, OfLongRunsTheOneFoundSuffices) {
  constexpr uint64_t kAll = ~uint64_t{0};
  Chunks four({kAll >> 31, kAll >> 24, kAll >> 29, kAll >> 23});  // 33, 40, 35 and 41
  for (size_t n = 33; n <= 41; ++n) {
    size_t found = four.found(n);
    ASSERT_LT(found, 4u) << n;
    EXPECT_GE(longest_run(four.chunks[found].free), n);
    EXPECT_EQ(found == 3, n == 41) << "those of its own step first";
  }
  EXPECT_EQ(four.found(42), 4u) << "none";
}

// Whatever changes, what is found has the shortest run that suffices, to within the steps; nothing is found only if there is none.
TEST(ChunkIndex, IsRightAfterRandomChanges) {
  std::mt19937_64 random(2);
  Chunks ten(std::vector<uint64_t>(10, 0));
  for (int i = 0; i < 20000; ++i) {
    ten.set(random() % 10,
            random() % 8 == 0 ? ~uint64_t{0} >> random() % 64 : (random() | random()) & ~uint64_t{0} >> random() % 64);
    size_t n = random() % 64 + 1, found = ten.found(n), best = 65;
    for (const Chunk& chunk : ten.chunks)
      if (longest_run(chunk.free) >= n) best = std::min(best, longest_run(chunk.free));
    ASSERT_EQ(found == 10, best == 65) << n;
    if (found == 10) continue;
    size_t length = longest_run(ten.chunks[found].free);
    ASSERT_GE(length, n);
    ASSERT_EQ(ChunkIndex::step_of(length), ChunkIndex::step_of(best)) << length << " for " << n << ", best " << best;
  }
}

TEST(ChunkIndex, FollowsEachChange) {
  Chunks two({0xff, ~uint64_t{0}});
  two.set(0, 0);
  EXPECT_EQ(two.found(1), 1u);
  two.set(1, 0x7);
  EXPECT_EQ(two.found(4), 2u) << "none";
  two.set(0, 0x3);
  EXPECT_EQ(two.found(2), 0u);
  two.index.remove(two.chunks[0]);
  EXPECT_EQ(two.found(2), 1u);
}

TEST(ChunkIndex, OfChunksWithRunsOfOneLengthAnyIsFound) {
  Chunks many(std::vector<uint64_t>(20, 0xf0));
  for (size_t left = 20; left > 0; --left) {
    size_t found = many.found(4);
    ASSERT_LT(found, 20u);
    many.set(found, 0);
  }
  EXPECT_EQ(many.found(1), 20u);
}

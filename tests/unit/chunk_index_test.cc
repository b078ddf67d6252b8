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

// Random operations by one thread under any options: every structure is examined and the bound of section 4.1 holds,
// all along.  (Invariant 3 is examined by the library itself, after each operation.)
#include <algorithm>
#include <cstring>
#include <random>
#include <set>

#include "hoard_support.h"

using namespace hoard_test;

namespace {

struct Block {
  unsigned char* memory;
  size_t size;
  unsigned char mark;
};

class HoardRandom : public testing::Test {
 protected:
  void allocate_one(size_t size) {
    auto* memory = static_cast<unsigned char*>(allocate(size));
    ASSERT_NE(memory, nullptr);
    ASSERT_EQ(address_of(memory) % kGranule, 0u);
    ASSERT_GE(usable_size(memory, "test"), size);
    live_.push_back({memory, size, static_cast<unsigned char>(random_())});
    memset(memory, live_.back().mark, size);
    if (size > classes.largest()) return;
    used_.insert(classes.of(size));
    u_ += usable_size(memory, "test");
    max_ = std::max(max_, u_);
  }
  void free_one() {
    std::swap(live_[random_() % live_.size()], live_.back());
    Block block = live_.back();
    live_.pop_back();
    for (size_t i = 0; i < block.size; ++i) ASSERT_EQ(block.memory[i], block.mark);
    if (block.size <= classes.largest()) u_ -= usable_size(block.memory, "test");
    deallocate(block.memory, "test");
  }
  size_t allowed() {
    if (options.empty_fraction == kThousand) return SIZE_MAX;  // f = 1: no bound is promised
    size_t smallest = options.superblock;
    for (size_t c : used_) smallest = std::min<size_t>(smallest, classes[c].size * classes[c].blocks);
    return bound(max_, smallest, used_.size());
  }
  // Grows and shrinks, most sizes small.
  void run(size_t operations, size_t most_live, size_t largest) {
    for (size_t i = 0; i < operations; ++i) {
      size_t wanted = (i * 8 / operations) % 2 == 0 ? most_live : most_live / 10;
      bool grow = live_.empty() || (random_() % 3 != 0) == (live_.size() < wanted);
      grow ? allocate_one(1 + random_() % (random_() % 4 == 0 ? largest : 200)) : free_one();
      if (HasFatalFailure()) return;
      ASSERT_LE(heaps.superblocks.taken(), allowed());
      ASSERT_TRUE(i % 16 != 0 || is_valid()) << "after operation " << i;
    }
    while (!live_.empty()) free_one();
    EXPECT_TRUE(is_valid());
    EXPECT_EQ(usage().allocated, 0u);
  }
  std::mt19937 random_{20001112};
  std::vector<Block> live_;
  std::set<size_t> used_;  // size classes
  size_t u_ = 0, max_ = 0;
};

}  // namespace

TEST_F(HoardRandom, ManyClasses) { run(20000, 1200, 6000); }
TEST_F(HoardRandom, FewClasses) { run(20000, 3000, 250); }

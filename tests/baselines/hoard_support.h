// What the tests of Hoard share.  Each runs in a process of its own: the options are fixed with the first allocation.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <utility>

#include "baselines/hoard/heaps.h"
#include "contract_support.h"

namespace hoard_test {

using namespace hm::hoard;
using namespace contract;

using Variables = std::initializer_list<std::pair<const char*, const char*>>;

// Where the options are, before anything was allocated.
inline void start_with(Variables variables) {
  ASSERT_EQ(heaps.count(), 0u) << "one test a process: run them with ctest";
  for (auto [name, value] : variables) setenv(name, value, 1);
  hoard::start();
}

// function(), on a thread of this heap.
inline void on_heap(size_t number, const std::function<void()>& function) {
  for (bool done = false; !done;)
    on_thread([&] {
      if (heaps.of_this_thread() != &heaps[number]) return;
      function();
      done = true;
    });
}

// Of the block's class.
inline size_t blocks_of(size_t size) { return classes[classes.of(size)].blocks; }
inline Superblock& superblock(const void* block) { return Superblock::of(block); }
inline size_t taken() { return heaps.superblocks.taken(); }

// Frees all but so many of each superblock; the blocks fill theirs.
inline std::vector<void*> thin_out(const std::vector<void*>& blocks, size_t left_in_each) {
  std::vector<void*> left;
  size_t n = superblock(blocks[0]).blocks();
  for (size_t i = 0; i < blocks.size(); ++i)
    if (i % n < left_in_each) left.push_back(blocks[i]);
    else give(blocks[i]);
  return left;
}

// Section 4.1 with its constants, in superblocks: U/(1 - f) and K*S for each heap.  U: the most bytes in use at a time;
// smallest: what the blocks of a superblock come to, at least.  With several size classes in use, each may have that
// much at its own time, and malloc may have brought each heap one more of each.
inline size_t bound(size_t max_in_use, size_t smallest, size_t classes_in_use = 1) {
  size_t more = classes_in_use > 1 ? classes_in_use : options.keep == 0;
  size_t bytes = max_in_use * kThousand / (kThousand - options.empty_fraction) +
                 heaps.count() * (options.keep + more) * options.superblock;
  return classes_in_use * bytes / smallest;
}
// For one class.
inline size_t bound_of(size_t size, size_t most_live) {
  const SizeClass& c = classes[classes.of(size)];
  return bound(most_live * c.size, c.size * c.blocks);
}

}  // namespace hoard_test

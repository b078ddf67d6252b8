// ar-random (the test of ar_malloc, "Analysis of a Parallel Memory Allocator", section Testing): each thread repeatedly
// tosses a coin whether to allocate a block of 8 to 1024 bytes or to free a random one of its own.  The article ran it
// for each number of arenas; here the runner sets that number in the environment of allocators that have arenas.  An
// operation is a malloc with its free.
//
//   ar-random [--threads 1] [--steps 20000000]
//
// --steps, mallocs and frees together, are divided over the threads, so times over threads give the speed-up.
//
// How it misleads: no program has uniform sizes, as the article says, and few blocks of each size stay live: a cache of
// some dozen blocks per size serves nearly every call.  At most 1024 blocks live per thread, half of that on average.
// The coin, the size and the choice cost some nanoseconds, the same for all allocators.
#include <array>

#include "common.h"

namespace {

using namespace bench;

constexpr std::uint32_t kSmallest = 8;
constexpr std::uint32_t kLargest = 1024;

class Blocks {
 public:
  bool empty() const { return live_ == 0; }
  bool full() const { return live_ == blocks_.size(); }
  void add(std::size_t size) { blocks_[live_++] = {local::allocate_touched(size), size}; }
  void remove(std::uint32_t place) {
    local::release(blocks_[place].address, blocks_[place].size);
    blocks_[place] = blocks_[--live_];
  }
  std::uint32_t live() const { return live_; }

 private:
  struct Block {
    void* address;
    std::size_t size;
  };
  std::array<Block, 1024> blocks_;
  std::uint32_t live_ = 0;
};

// Returns how many blocks it allocated; at the end all are freed.
std::uint32_t run(std::uint32_t steps, Random random) {
  Blocks blocks;
  std::uint32_t allocated = 0;
  for (std::uint32_t i = 0; i < steps; ++i) {
    bool heads = (random.next() & 1) != 0;
    if (blocks.empty() || (heads && !blocks.full())) {
      blocks.add(kSmallest + random.below(kLargest - kSmallest + 1));
      ++allocated;
    } else {
      blocks.remove(random.below(blocks.live()));
    }
  }
  while (!blocks.empty()) blocks.remove(0);
  return allocated;
}

}  // namespace

int main(int count, char** values) {
  Arguments arguments(count, values);
  unsigned threads = arguments.threads();
  std::uint32_t steps = arguments.count("steps", 20'000'000);
  arguments.finish();
  if (steps < threads) arguments.refuse("--steps: at least one for each thread");

  std::vector<std::uint32_t> allocated(threads);
  Span span =
      run_workers(threads, false, [&](unsigned index) { allocated[index] = run(steps / threads, Random(index + 1)); });
  double ops = 0;
  for (std::uint32_t each : allocated) ops += each;
  report("ar-random", threads, ops, span);
}

// shbench (MicroQuill; HMalloc, section 4.1 and Table 1): each thread allocates 1000 blocks of random sizes from 1
// byte to 1 KB and frees them one after the other; the threads share the iterations.  All memory is local.
// Nanoseconds of wall time per malloc and free, over all threads.
//
//   shbench [--threads 1] [--iterations 200000]
//
// The blocks are freed in the order in which they were allocated, as the HMalloc paper says ("serially"); Hoard
// (section 5.2) frees in random order, and sizes from 8 to 100 bytes (5.4).
// How it misleads: sizes are uniform, so half of the calls ask for more than 512 bytes, whereas programs ask for small
// blocks far more often; 500 KB live per thread fit the L2 cache; first in, first out is the order that coalescence
// free was made for.  The draw costs two nanoseconds, the same for all allocators.
#include <array>

#include "common.h"

namespace {

using namespace bench;

constexpr std::size_t kBlocks = 1000;
constexpr std::uint32_t kLargest = 1024;

struct Block {
  void* address = nullptr;
  std::size_t size = 0;
};

void work(std::uint32_t iterations, std::uint64_t seed) {
  std::array<Block, kBlocks> blocks;
  Random random(seed);
  for (std::uint32_t i = 0; i < iterations; ++i) {
    for (Block& block : blocks) {
      block.size = 1 + random.below(kLargest);
      block.address = local::allocate_touched(block.size);
    }
    for (Block& block : blocks) local::release(block.address, block.size);
  }
}

}  // namespace

int main(int count, char** values) {
  Arguments arguments(count, values);
  unsigned threads = arguments.threads();
  std::uint32_t share = arguments.count("iterations", 200'000, threads) / threads;
  arguments.finish();

  Span span = run_workers(threads, false, [&](unsigned index) { work(share, index + 1); });
  report("shbench", threads, static_cast<double>(share) * threads * kBlocks, span);
}

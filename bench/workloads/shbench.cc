// shbench (after MicroQuill's SmartHeap benchmark): many sizes from 1 to 1000 bytes, small ones far more often, with
// random lifetimes; several passes, each of which ends by freeing what is left.  Every thread works for itself.
// Nanoseconds of wall time per malloc and free, over all threads.
//
//   shbench [--threads 1] [--passes 20] [--steps 200000] [--live 4000] [--pin 1]
//
// How it misleads: the sizes are drawn from a cubed uniform variable (half are below 126 bytes), not from a program;
// 4000 blocks live per thread still fit the second-level cache.  The draw costs two to three nanoseconds, the same for
// all.
#include "common.h"

namespace {

using namespace bench;

constexpr std::uint32_t kSizes = 1 << 12;

std::vector<std::uint16_t> draw_sizes() {
  std::vector<std::uint16_t> sizes(kSizes);
  Random random(7);
  for (auto& size : sizes) {
    double uniform = random.next() / 4294967296.0;
    size = static_cast<std::uint16_t>(1 + 999 * uniform * uniform * uniform);
  }
  return sizes;
}

struct Block {
  void* address = nullptr;
  std::size_t size = 0;
};

void one_pass(std::vector<Block>& live, const std::vector<std::uint16_t>& sizes, unsigned steps, Random& random) {
  for (unsigned i = 0; i < steps; ++i) {
    std::uint32_t choice = random.next();
    Block& block = live[(choice >> 12) % live.size()];
    if (block.address != nullptr) release(block.address, block.size);
    block.size = sizes[choice % kSizes];
    block.address = allocate_touched(block.size);
  }
  for (Block& block : live) {
    if (block.address != nullptr) release(block.address, block.size);
    block = {};
  }
}

}  // namespace

int main(int count, char** values) {
  Arguments arguments(count, values);
  unsigned threads = arguments.count("threads", 1);
  unsigned passes = arguments.count("passes", 20);
  unsigned steps = arguments.count("steps", 200000);
  const std::vector<std::uint16_t> sizes = draw_sizes();

  Span span = run_workers(threads, arguments.count("pin", 0) != 0, [&](unsigned index) {
    std::vector<Block> live(arguments.count("live", 4000));
    Random random(index + 1);
    for (unsigned pass = 0; pass < passes; ++pass) one_pass(live, sizes, steps, random);
  });
  double ops = static_cast<double>(threads) * passes * steps;
  report({"shbench", "1-1000", threads, ops, span.elapsed / ops * 1e9,
          field("cpu_share", span.cpu_share)});
}

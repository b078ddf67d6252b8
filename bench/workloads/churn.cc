// churn: each thread has so many blocks and replaces one after another at random, by one of a size drawn evenly from 1 byte
// to the largest.  Above some size, hmalloc's is 32 KB, an allocator serves blocks in another way than below; here one and
// the same program needs both all the time.  Nanoseconds of wall time per malloc and free, over all threads.
//
//   churn [--threads 1] [--max 65536] [--live 500] [--steps 1000000]
//
// live: blocks of each thread; steps: replacements of each thread.  How it misleads: programs that draw their sizes evenly
// are rare, most ask for small blocks far more often; and only the first and the last byte of a block are written.
#include <vector>

#include "common.h"

namespace {

using namespace bench;

struct Block {
  char* address = nullptr;
  std::uint32_t size = 0;
};

void replace(Block& block, std::uint32_t size) {
  if (block.address != nullptr) local::release(block.address, block.size);
  block = {static_cast<char*>(local::allocate_touched(size)), size};
  block.address[size - 1] = 1;
}

void work(std::uint32_t max, std::uint32_t live, std::uint32_t steps, Random random) {
  std::vector<Block> blocks(live);
  for (Block& block : blocks) replace(block, 1 + random.below(max));
  for (std::uint32_t i = 0; i < steps; ++i) replace(blocks[random.below(live)], 1 + random.below(max));
  for (Block& block : blocks) local::release(block.address, block.size);
}

}  // namespace

int main(int count, char** values) {
  Arguments arguments(count, values);
  unsigned threads = arguments.threads();
  std::uint32_t max = arguments.count("max", 65'536, 1, 1 << 24);
  std::uint32_t live = arguments.count("live", 500);
  std::uint32_t steps = arguments.count("steps", 1'000'000);
  arguments.finish();

  Span span = run_workers(threads, false, [&](unsigned index) { work(max, live, steps, Random(index + 1)); });
  report("churn", threads, static_cast<double>(threads) * (static_cast<double>(steps) + live), span);
}

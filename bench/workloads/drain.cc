// drain: does memory go back to the system?  Allocates 250 MB of small blocks of mixed sizes, frees them all in random
// order, and then continues with a little activity, as a server does after its rush hour.  Reports the resident set
// before, at the peak, right after the last free, and at the end, and the ratio of end to before.
//
//   drain [--megabytes 250] [--wait 3] [--threads 1]
//
// wait: seconds of light activity, longer than every allocator's decay (10 s is the longest default among the peers).
// With threads, each allocates its share and frees what its neighbour allocated.
// How it misleads: an allocator that gives back at once looks perfect here and slow in threadtest; the result of one that
// acts only when called depends on the activity; 250 MB in one phase is kinder than a program that never frees everything.
#include <algorithm>
#include <span>

#include "common.h"
#include "mapped.h"

namespace {

using namespace bench;

struct Block {
  void* address;
  std::size_t size;
};

void fill(std::span<Block> blocks, std::uint64_t seed) {
  Random random(seed);
  for (Block& block : blocks) {
    std::uint32_t draw = random.next();
    block.size = draw % 8 != 0 ? 16 + draw % 500 : 16 + draw % 4000;
    block.address = shared::allocate(block.size);
    std::memset(block.address, 1, block.size);
  }
}

void free_in_random_order(std::span<Block> blocks, std::uint64_t seed) {
  Random random(seed);
  for (std::size_t left = blocks.size(); left > 0; --left) {
    std::swap(blocks[left - 1], blocks[random.below(static_cast<std::uint32_t>(left))]);
    shared::release(blocks[left - 1].address, blocks[left - 1].size);
  }
}

void light_activity(double seconds) {
  Random random(3);
  for (double end = now() + seconds; now() < end;) {
    for (int i = 0; i < 100; ++i) {
      std::size_t size = 16 + random.below(1000);
      shared::release(shared::allocate_touched(size), size);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

constexpr std::size_t kMeanSize = 484;  // of the sizes that fill() draws

}  // namespace

int main(int count, char** values) {
  Arguments arguments(count, values);
  unsigned threads = arguments.threads();
  std::uint32_t megabytes = arguments.count("megabytes", 250, threads);
  double wait = arguments.seconds("wait", 3);
  arguments.finish();

  light_activity(0.05);
  long before = resident_kb();
  long top = 0;
  double ops = 0;
  Span filling;
  Span freeing;
  {
    Mapped<Block> blocks(std::size_t{megabytes} * 1'048'576 / kMeanSize / threads * threads);
    std::size_t share = blocks.all().size() / threads;
    auto part = [&](unsigned index) { return blocks.all().subspan(index % threads * share, share); };
    if (threads == 1) {
      filling = run_here([&] { fill(part(0), 1); });
      top = resident_kb();
      freeing = run_here([&] { free_in_random_order(part(0), 2); });
    } else {
      filling = run_workers(threads, false, [&](unsigned index) { fill(part(index), index + 1); });
      top = resident_kb();
      freeing = run_workers(threads, false, [&](unsigned index) { free_in_random_order(part(index + 1), index + 1); });
    }
    ops = static_cast<double>(blocks.all().size());
  }
  long freed = resident_kb();
  light_activity(wait);
  long end = resident_kb();
  Span span{filling.elapsed + freeing.elapsed, std::min(filling.cpu_share, freeing.cpu_share)};
  report("drain", threads, ops, span,
         field("before_kb", static_cast<double>(before)) + field("top_kb", static_cast<double>(top)) +
             field("freed_kb", static_cast<double>(freed)) + field("end_kb", static_cast<double>(end)) +
             field("end_ratio", static_cast<double>(end) / static_cast<double>(before)));
}

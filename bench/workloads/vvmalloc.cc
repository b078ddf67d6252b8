// vvmalloc (VVMalloc, approaches 2 and 4, Figures 7 to 9 and 13 to 18): every thread plays a sequence of calls that was
// drawn in advance, as the malloc-lab driver plays a trace.  An operation is a malloc with its free; the paper counts
// them separately.
//
//   vvmalloc [--workload 1|2|3] [--threads 1] [--repeats 10]
//
//   1   128,000 calls per thread, mostly of at most 32 bytes, 16,384 blocks live
//   2    80,000 calls per thread, 3 to 12 KB, 1000 blocks live
//   3    80,000 calls per thread, 4 bytes to 21 KB, small ones as often as large ones (in powers of two), 1000 live
//
// --repeats: how often the sequence is played; each play ends with every block freed.
//
// How it misleads: the paper's traces were not published with it; these share only their numbers of calls and ranges of
// sizes.  Blocks die at random, which is kinder to caches of freed blocks, and less kind to neighbours that merge, than
// the phases of a program.  Only the first byte of a block is written, so page faults of large blocks beyond their
// first page are left out.
#include <array>

#include "calls.h"
#include "common.h"

namespace {

using namespace bench;

struct Workload {
  std::uint32_t calls;
  std::uint32_t live;
  std::uint32_t (*draw_size)(Random&);
};

constexpr std::array<Workload, 3> kWorkloads = {
    {{128'000, 16'384, mostly_tiny}, {80'000, 1000, large}, {80'000, 1000, mixed}}};

// Grows to the live set, then replaces random blocks, then frees all.
std::vector<Call> draw_calls(const Workload& workload, Random random) {
  std::vector<Call> calls;
  calls.reserve(workload.calls);
  for (std::uint32_t slot = 0; slot < workload.live; ++slot) calls.push_back({slot, workload.draw_size(random)});
  while (calls.size() + workload.live < workload.calls) {
    std::uint32_t slot = random.below(workload.live);
    calls.push_back({slot, 0});
    calls.push_back({slot, workload.draw_size(random)});
  }
  for (std::uint32_t slot = 0; slot < workload.live; ++slot) calls.push_back({slot, 0});
  return calls;
}

}  // namespace

int main(int count, char** values) {
  Arguments arguments(count, values);
  const Workload& workload = kWorkloads[arguments.count("workload", 1, 1, 3) - 1];
  unsigned threads = arguments.threads();
  std::uint32_t repeats = arguments.count("repeats", 10);
  arguments.finish();

  std::vector<std::vector<Call>> calls;
  std::vector<std::vector<Block>> blocks;
  for (unsigned index = 0; index < threads; ++index) {
    calls.push_back(draw_calls(workload, Random(index + 1)));
    blocks.emplace_back(workload.live);
  }
  Span span = run_workers(threads, false, [&](unsigned index) {
    for (std::uint32_t i = 0; i < repeats; ++i) play(calls[index], blocks[index]);
  });
  report("vvmalloc", threads, static_cast<double>(threads) * repeats * workload.calls / 2, span);
}

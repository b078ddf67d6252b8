// largetest (SFMalloc; HMalloc, section 4.2 and Table 1): each thread allocates 100 blocks of 64 bytes and then one
// of 64 KB, and frees them all.  All memory is local, though hmalloc serves a block of 64 KB by a call.
// Nanoseconds of wall time per malloc and free, over all threads.
//
//   largetest [--threads 1] [--iterations 1000000]
//
// iterations: of each thread; the paper divides those of shbench among the threads, but not these.  How it misleads:
// only the first byte of the large block is written, so an allocator that gives its pages back pays for one of them
// again, not for sixteen; with one large block in 101, the small ones decide the figure unless it does.
#include <array>

#include "common.h"

namespace {

using namespace bench;

constexpr std::size_t kSmall = 64;
constexpr std::size_t kLarge = 65'536;

void work(std::uint32_t iterations) {
  std::array<void*, 100> blocks;
  for (std::uint32_t i = 0; i < iterations; ++i) {
    for (void*& block : blocks) block = local::allocate_touched(kSmall);
    void* large = local::allocate_touched(kLarge);
    for (void* block : blocks) local::release(block, kSmall);
    local::release(large, kLarge);
  }
}

}  // namespace

int main(int count, char** values) {
  Arguments arguments(count, values);
  unsigned threads = arguments.threads();
  std::uint32_t iterations = arguments.count("iterations", 1'000'000);
  arguments.finish();

  Span span = run_workers(threads, false, [&](unsigned) { work(iterations); });
  report("largetest", threads, static_cast<double>(iterations) * threads * 101, span);
}

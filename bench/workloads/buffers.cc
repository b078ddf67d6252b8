// buffers: each thread holds a few buffers of random size, as a server of images or columns does, and replaces one at
// random: frees it, allocates another, writes one byte into each page of it.  All memory is local.  Nanoseconds of wall
// time per malloc and free, over all threads.
//
//   buffers [--threads 1] [--blocks 8] [--min 1024] [--max 16384] [--replacements 2000]
//
// min and max: KB; blocks: of each thread; replacements: of all threads.
// How it misleads: an allocator that keeps every page pays for none, which is the point; the peak shown beside the time
// says what it held meanwhile.  A program that fills its buffers spends more on that than on any of this.
#include <vector>

#include "common.h"

namespace {

using namespace bench;

constexpr std::size_t kPage = 4096;

struct Buffer {
  char* start = nullptr;
  std::size_t bytes = 0;

  void release() const {
    if (start != nullptr) local::release(start, bytes);
  }
};

Buffer make_buffer(std::size_t bytes) {
  auto* start = static_cast<char*>(local::allocate(bytes));
  for (std::size_t at = 0; at < bytes; at += kPage) static_cast<volatile char*>(start)[at] = 1;
  return {start, bytes};
}

}  // namespace

int main(int count, char** values) {
  Arguments arguments(count, values);
  unsigned threads = arguments.threads();
  std::uint32_t blocks = arguments.count("blocks", 8, 1, 10'000);
  std::uint32_t smallest = arguments.count("min", 1024);
  std::uint32_t largest = arguments.count("max", 16'384, smallest, 1u << 22);
  std::uint32_t replacements = arguments.count("replacements", 2000, threads) / threads;
  arguments.finish();

  Span span = run_workers(threads, false, [&](unsigned index) {
    Random random(index + 1);
    std::vector<Buffer> held(blocks);
    for (std::uint32_t i = 0; i < replacements; ++i) {
      Buffer& buffer = held[random.below(blocks)];
      buffer.release();
      buffer = make_buffer((smallest + std::size_t{random.below(largest - smallest + 1)}) * 1024);
    }
    for (const Buffer& buffer : held) buffer.release();
  });
  report("buffers", threads, static_cast<double>(replacements) * threads, span);
}

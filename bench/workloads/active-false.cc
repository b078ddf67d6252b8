// active-false (Hoard, section 5.3; HMalloc, section 4.4 and Table 1): does the allocator give parts of one cache
// line to several threads?  Each thread allocates a block of 8 bytes, writes each of its bytes 20,000 times and frees
// it.  All memory is local.  Nanoseconds of wall time per malloc, its writes and its free, over all threads.
//
//   active-false [--threads 1] [--size 8] [--pairs 200000] [--writes 20000]
//
// pairs: of each thread.
// How it misleads: it measures the caches, not the allocator's speed, and only while the threads really run at once;
// threads that share a core never disturb each other.  Hardly any allocator with thread caches fails it today.
#include "common.h"
#include "false_sharing.h"

int main(int count, char** values) {
  using namespace bench;
  Arguments arguments(count, values);
  unsigned threads = arguments.threads();
  std::size_t size = arguments.count("size", 8);
  std::uint32_t pairs = arguments.count("pairs", 200'000);
  std::uint32_t writes = arguments.count("writes", 20'000);
  arguments.finish();

  Span span = run_workers(threads, false, [&](unsigned) {
    for (std::uint32_t i = 0; i < pairs; ++i) {
      void* block = local::allocate(size);
      write_often(block, size, writes);
      local::release(block, size);
    }
  });
  report("active-false", threads, static_cast<double>(pairs) * threads, span);
}

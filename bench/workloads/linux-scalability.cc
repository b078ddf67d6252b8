// linux-scalability (Lever and Boreham; HMalloc, section 4.1 and Table 1): each thread allocates a million blocks of
// 512 bytes and then frees them all.  All memory is local.  Nanoseconds of wall time per malloc and free, over all
// threads.
//
//   linux-scalability [--threads 1] [--size 512] [--objects 1000000]
//
// objects: of each thread.
// How it misleads: it happens once, so nothing is ever reused: most of the figure is the kernel's time to hand out half
// a gigabyte per thread page by page, and huge pages decide more than any allocator.
#include "common.h"

int main(int count, char** values) {
  using namespace bench;
  Arguments arguments(count, values);
  unsigned threads = arguments.threads();
  std::size_t size = arguments.count("size", 512);
  std::size_t objects = arguments.count("objects", 1'000'000);
  arguments.finish();

  std::vector<std::vector<void*>> blocks(threads, std::vector<void*>(objects));
  Span span = run_workers(threads, false, [&](unsigned index) {
    for (void*& block : blocks[index]) block = local::allocate_touched(size);
    for (void* block : blocks[index]) local::release(block, size);
  });
  report("linux-scalability", threads, static_cast<double>(objects) * threads, span);
}

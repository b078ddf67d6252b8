// threadtest (Hoard): in every round each thread allocates its share of 100,000 objects and then frees them all.
// Nanoseconds of wall time per malloc and free, over all threads.
//
//   threadtest [--threads 1] [--size 64] [--objects 100000] [--rounds 60] [--pin 1]
//
// Perfectly parallel: a scalable allocator halves the figure with every doubling of the cores.
// How it misleads: no object ever leaves its thread.  A round's 6.4 MB are all freed before the next round, so the
// figure is decided by whether the allocator keeps them or gives the pages back and faults them in again.
#include "common.h"

int main(int count, char** values) {
  using namespace bench;
  Arguments arguments(count, values);
  unsigned threads = arguments.count("threads", 1);
  unsigned rounds = arguments.count("rounds", 60);
  std::size_t size = arguments.count("size", 64);
  std::size_t share = arguments.count("objects", 100000) / threads;

  std::vector<std::vector<void*>> objects(threads, std::vector<void*>(share));
  Span span = run_workers(threads, arguments.count("pin", 0) != 0, [&](unsigned index) {
    std::vector<void*>& mine = objects[index];
    for (unsigned round = 0; round < rounds; ++round) {
      for (void*& object : mine) object = allocate_touched(size);
      for (void* object : mine) release(object, size);
    }
  });
  double ops = static_cast<double>(share) * threads * rounds;
  report({"threadtest", std::to_string(size), threads, ops, span.elapsed / ops * 1e9,
          field("cpu_share", span.cpu_share)});
}

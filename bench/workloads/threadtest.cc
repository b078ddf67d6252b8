// threadtest (Hoard, section 5.2; HMalloc, section 4.1 and Table 1): in every round each thread allocates its share of
// 100,000 objects and then frees them all.  All memory is local.  Nanoseconds of wall time per malloc and free, over
// all threads.
//
//   threadtest [--threads 1] [--size 64] [--objects 100000] [--rounds 5000] [--pin 0] [--latency FILE]
//
// size: 64 in the HMalloc paper, 8 in Hoard's.
// Perfectly parallel: a scalable allocator halves the figure with every doubling of the cores.
// How it misleads: no object ever leaves its thread.  A round's 6.4 MB are all freed before the next round, so the
// figure depends on whether the allocator keeps them or gives the pages back and faults them in again.
#include "common.h"

namespace {

using namespace bench;

template <class Sampler>
void work(std::vector<void*>& objects, std::size_t size, unsigned rounds, Sampler& sampler) {
  for (unsigned round = 0; round < rounds; ++round) {
    for (void*& object : objects) object = sampler.allocation([&] { return local::allocate_touched(size); });
    for (void* object : objects) sampler.freeing([&] { local::release(object, size); });
  }
}

}  // namespace

int main(int count, char** values) {
  Arguments arguments(count, values);
  unsigned threads = arguments.threads();
  unsigned rounds = arguments.count("rounds", 5000);
  std::size_t size = arguments.count("size", 64);
  std::size_t share = arguments.count("objects", 100'000, threads) / threads;
  bool pin = arguments.flag("pin");
  std::string latency = arguments.text("latency", "");
  arguments.finish();

  std::vector<std::vector<void*>> objects(threads, std::vector<void*>(share));
  Sampled run = run_sampled(latency, threads, [&](auto& samplers) {
    return run_workers(threads, pin, [&](unsigned index) { work(objects[index], size, rounds, samplers[index]); });
  });
  report("threadtest", threads, static_cast<double>(share) * threads * rounds, run.span, run.fields);
}

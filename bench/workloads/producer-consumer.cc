// producer-consumer (SFMalloc; HMalloc, section 4.3 and Table 1): one thread allocates blocks of 8 bytes, all others
// free them: no block is freed by the thread that made it, and an allocator that leaves freed blocks with the freeing
// thread grows without bound.  All memory is shared.  Nanoseconds of wall time per malloc and free, over all threads.
//
//   producer-consumer [--threads 2] [--size 8] [--rounds 5000] [--latency FILE]
//
// threads: one producer, the others consumers.  A round fills the paper's buffer of 60,000 bytes with 7500 pointers and
// hands it over whole; the consumers get the rounds in turn, and each consumer has two buffers, one to be filled while
// it empties the other.
// How it misleads: there is one producer, so the figure is the producer's time, or with two threads that of the slower
// side, and more consumers do not improve it; cpu_share is below one because the others sleep.  The consumers never
// read what they free, and a buffer's worth of blocks is freed in one go.
#include <array>
#include <memory>

#include "common.h"
#include "mailbox.h"

namespace {

using namespace bench;

constexpr std::size_t kBlocks = 60'000 / sizeof(void*);

struct Setting {
  unsigned consumers;
  std::uint32_t rounds;
  std::size_t size;
};

// The buffers of one consumer, used in turn.
using Buffers = std::array<Mailbox<std::array<void*, kBlocks>>, 2>;

template <class Sampler>
void produce(const Setting& setting, std::vector<Buffers>& buffers, Sampler& sampler) {
  for (std::uint32_t round = 0; round < setting.rounds; ++round) {
    auto& buffer = buffers[round % setting.consumers][round / setting.consumers % 2];
    for (void*& block : buffer.to_fill()) {
      block = sampler.allocation([&] { return shared::allocate_touched(setting.size); });
    }
    buffer.send();
  }
}

template <class Sampler>
void consume(const Setting& setting, unsigned consumer, Buffers& buffers, Sampler& sampler) {
  for (std::uint32_t round = consumer; round < setting.rounds; round += setting.consumers) {
    auto& buffer = buffers[round / setting.consumers % 2];
    for (void* block : buffer.received()) sampler.freeing([&] { shared::release(block, setting.size); });
    buffer.give_back();
  }
}

}  // namespace

int main(int count, char** values) {
  Arguments arguments(count, values);
  unsigned threads = arguments.threads(2, 2);
  Setting setting{threads - 1, arguments.count("rounds", 5000, threads - 1), arguments.count("size", 8)};
  std::string latency = arguments.text("latency", "");
  arguments.finish();

  std::vector<Buffers> buffers(setting.consumers);
  Sampled run = run_sampled(latency, threads, [&](auto& samplers) {
    return run_workers(threads, false, [&](unsigned index) {
      if (index == setting.consumers) produce(setting, buffers, samplers[index]);
      else consume(setting, index, buffers[index], samplers[index]);
    });
  });
  report("producer-consumer", threads, static_cast<double>(setting.rounds) * kBlocks, run.span, run.fields);
}

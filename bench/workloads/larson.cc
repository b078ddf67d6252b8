// larson (Larson and Krishnan): a server whose threads come and go.  Each thread replaces random slots of 1000 blocks
// of random sizes; after a number of steps it starts a successor, hands it the slots and ends.  The successor frees
// blocks that a thread which is no more allocated.  Nanoseconds of wall time per malloc and free over all threads, and
// steps per second.
//
//   larson [--threads 1] [--min 10] [--max 500] [--slots 1000] [--steps 50000] [--seconds 0.4]
//
// How it misleads: a generation is short (a few hundred microseconds), so starting and ending threads, which hardly
// any server does at this rate, is part of the figure; the time is fixed and the work is not, so peak memory grows
// with speed in allocators that lose something with each thread.
#include "common.h"

namespace {

using namespace bench;

struct Chain {  // one line of threads, each the heir of the one before
  struct Slot {
    void* address = nullptr;
    std::size_t size = 0;
  };
  std::vector<Slot> slots;
  Random random;
  double steps = 0;
  double generations = 0;
  Stamp stamp{};
};

struct Setting {
  std::uint32_t smallest;
  std::uint32_t spread;
  unsigned steps;
  double seconds;
};

std::atomic<unsigned> running;

void generation(Chain& chain, const Setting& setting) {
  for (unsigned i = 0; i < setting.steps; ++i) {
    auto& slot = chain.slots[chain.random.below(static_cast<std::uint32_t>(chain.slots.size()))];
    release(slot.address, slot.size);
    slot.size = setting.smallest + chain.random.below(setting.spread);
    slot.address = allocate_touched(slot.size);
  }
  chain.steps += setting.steps;
  ++chain.generations;
  chain.stamp.end = now();
  if (chain.stamp.end - chain.stamp.start < setting.seconds) {
    std::thread(generation, std::ref(chain), std::cref(setting)).detach();
  } else {
    running.fetch_sub(1);
  }
}

// The first of its line fills the slots, and starts the clock when all have.
void found(Chain& chain, const Setting& setting, std::atomic<unsigned>& waiting) {
  for (auto& slot : chain.slots) {
    slot.size = setting.smallest + chain.random.below(setting.spread);
    slot.address = allocate_touched(slot.size);
  }
  waiting.fetch_sub(1);
  for (unsigned spins = 0; waiting.load() > 0;) relax(spins);
  chain.stamp.start = now();
  generation(chain, setting);
}

}  // namespace

int main(int count, char** values) {
  Arguments arguments(count, values);
  unsigned threads = arguments.count("threads", 1);
  std::uint32_t smallest = arguments.count("min", 10);
  std::uint32_t largest = arguments.count("max", 500);
  Setting setting{smallest, largest - smallest + 1, arguments.count("steps", 50000), arguments.number("seconds", 0.4)};

  std::vector<Chain> chains;
  for (unsigned i = 0; i < threads; ++i) {
    chains.push_back({std::vector<Chain::Slot>(arguments.count("slots", 1000)), Random(i + 1)});
  }
  running.store(threads);
  std::atomic<unsigned> waiting{threads};
  for (Chain& chain : chains) std::thread(found, std::ref(chain), std::cref(setting), std::ref(waiting)).detach();
  while (running.load() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));

  Stamp all = chains[0].stamp;
  double steps = 0;
  double generations = 0;
  for (const Chain& chain : chains) {
    all.start = std::min(all.start, chain.stamp.start);
    all.end = std::max(all.end, chain.stamp.end);
    steps += chain.steps;
    generations += chain.generations;
  }
  double elapsed = all.end - all.start;
  report({"larson", std::to_string(smallest) + "-" + std::to_string(largest), threads, steps, elapsed / steps * 1e9,
          field("ops_per_s", steps / elapsed) + field("generations", generations)});
}

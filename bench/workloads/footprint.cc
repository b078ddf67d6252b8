// footprint: blocks with random lifetimes that are freed by random threads.  The threads share a table of 20,000 slots;
// a step puts a new block of random size into a random slot and frees the one it finds there, whoever made it.  Reports
// how much the resident set has grown, relative to the bytes requested and still live, once the table has been replaced
// many times over: median and maximum of the samples.  All memory is shared.
//
//   footprint [--threads 4] [--slots 20000] [--min 16] [--max 1000] [--steps 6000000]
//
// Steps are those of all threads; the second half is sampled.  How it misleads: uniform sizes punish wide size classes
// more than programs do; stacks are touched before the start and the table is static, but growth of the C library
// itself counts as the allocator's.  The time per step is reported too and says little: most of it is the writing of
// every byte.
#include <algorithm>
#include <array>

#include "common.h"

namespace {

using namespace bench;

constexpr std::size_t kMaxSlots = 1 << 20;
std::array<std::atomic<std::uint64_t*>, kMaxSlots> table;

struct alignas(128) Progress {  // written by one thread, read by the sampler
  std::atomic<std::int64_t> live_bytes{0};
  std::atomic<std::int64_t> steps{0};
};

struct Setting {
  std::uint32_t slots;
  std::uint32_t smallest;
  std::uint32_t spread;
  std::int64_t steps;
};

std::uint64_t* make_block(std::size_t size) {
  void* block = shared::allocate(size);
  std::memset(block, 0x5A, size);
  auto* words = static_cast<std::uint64_t*>(block);
  words[0] = size;
  return words;
}

void work(const Setting& setting, Progress& progress, std::uint64_t seed) {
  Random random(seed);
  std::int64_t live = 0;
  for (std::int64_t step = 1; step <= setting.steps; ++step) {
    std::size_t size = setting.smallest + random.below(setting.spread);
    std::uint64_t* old = table[random.below(setting.slots)].exchange(make_block(size));
    live += static_cast<std::int64_t>(size);
    if (old != nullptr) {
      std::size_t old_size = old[0];
      live -= static_cast<std::int64_t>(old_size);
      shared::release(old, old_size);
    }
    if (step % 256 == 0) {
      progress.live_bytes.store(live, std::memory_order_relaxed);
      progress.steps.store(step, std::memory_order_relaxed);
    }
  }
  progress.live_bytes.store(live);
  progress.steps.store(setting.steps);
}

struct Sampler {
  long start_kb;
  std::vector<double> ratios;
  double live_kb = 0;

  void sample(const std::vector<Progress>& progress) {
    std::int64_t live = 0;
    for (const Progress& one : progress) live += one.live_bytes.load(std::memory_order_relaxed);
    live_kb = static_cast<double>(live) / 1024;
    ratios.push_back(static_cast<double>(resident_kb() - start_kb) / live_kb);
  }
};

std::int64_t steps_done(const std::vector<Progress>& progress) {
  std::int64_t steps = 0;
  for (const Progress& one : progress) steps += one.steps.load(std::memory_order_relaxed);
  return steps;
}

// Touches the table and the code that the run needs, so that their pages are not counted.
long warm_up(const Setting& setting) {
  for (std::uint32_t i = 0; i < setting.slots; ++i) table[i].store(nullptr);
  shared::release(make_block(setting.smallest), setting.smallest);
  resident_kb();
  return resident_kb();
}

}  // namespace

int main(int count, char** values) {
  Arguments arguments(count, values);
  unsigned threads = arguments.threads(4);
  std::uint32_t total = arguments.count("steps", 6'000'000, 1000);
  std::uint32_t slots = arguments.count("slots", 20'000, 1, kMaxSlots);
  std::uint32_t smallest = arguments.count("min", 16, 16);
  std::uint32_t largest = arguments.count("max", 1000, smallest, 1u << 20);
  arguments.finish();
  Setting setting{slots, smallest, largest - smallest + 1, total / threads};
  std::vector<Progress> progress(threads);
  Sampler sampler{warm_up(setting), {}};
  sampler.ratios.reserve(10000);

  std::thread watcher([&] {
    const std::int64_t all = setting.steps * threads;
    for (std::int64_t done = 0; done < all; done = steps_done(progress)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      if (done > all / 2) sampler.sample(progress);
    }
    sampler.sample(progress);
  });
  Span span = run_workers(threads, false, [&](unsigned index) { work(setting, progress[index], index + 1); });
  watcher.join();

  std::sort(sampler.ratios.begin(), sampler.ratios.end());
  report("footprint", threads, static_cast<double>(setting.steps) * threads, span,
         field("footprint", sampler.ratios[sampler.ratios.size() / 2]) + field("footprint_max", sampler.ratios.back()) +
             field("live_kb", sampler.live_kb));
}

// larson (Larson and Krishnan; Hoard, section 5.2; HMalloc, section 4.3 and Table 1): a server whose threads come and
// go.  Each thread replaces random ones of 10,000 blocks of random sizes; after a number of steps it starts a
// successor, hands it the blocks and ends.  The successor frees blocks that a thread which is no more allocated.  All
// memory is shared.  Nanoseconds of wall time per malloc and free, over all threads.
//
//   larson [--threads 1] [--min 8] [--max 512] [--slots 10000] [--steps 50000] [--seconds 10]
//          [--latency FILE [--every SECONDS]]
//
// min and max: 8 and 512 in the HMalloc paper, 10 and 100 in Hoard's.  steps: of one thread's life.  every: does the server
// slow down or grow?  For each stretch of that many seconds it reports the 99.9th percentiles, the longest call and the
// resident memory, and their drift: the median of the last quarter of the stretches over that of the first.  FILE then has
// the samples of the last.  A run has at least four stretches, and takes longer if the machine delays them.
// How it misleads: a thread lives for milliseconds, so starting and ending threads, which hardly any server does at
// this rate, is part of the figure; the time is fixed and the work is not, so peak memory grows with speed in
// allocators that lose something with each thread.
#include "common.h"

namespace {

using namespace bench;

struct Slot {
  void* address = nullptr;
  std::size_t size = 0;
};

struct Setting {
  std::uint32_t smallest;
  std::uint32_t spread;
  unsigned steps;
  double seconds;
  double every;  // 0: the whole run is one stretch
};

constexpr std::size_t kMinRows = 4;  // a quarter of them is one

std::atomic<unsigned> running;

struct Row {
  double at;  // seconds since the start
  Stretch stretch;
  double resident_kb;
};

// A line of threads, each the successor of the one before.
template <class Sampler>
class alignas(128) Chain {
 public:
  Chain(const Setting& setting, std::uint32_t slots, Sampler& sampler, std::uint64_t seed)
      : setting_(setting), slots_(slots), sampler_(sampler), random_(seed) {}

  // The first thread of its line fills the slots, and starts the clock when all lines have.
  void found(std::atomic<unsigned>& waiting) {
    for (Slot& slot : slots_) fill(slot);
    waiting.fetch_sub(1);
    for (unsigned spins = 0; waiting.load() > 0;) relax(spins);
    stamp.begin();
    live();
  }

  Stamp stamp;
  double steps = 0;
  double generations = 0;
  std::vector<Row> rows;

 private:
  void fill(Slot& slot) {
    slot.size = setting_.smallest + random_.below(setting_.spread);
    slot.address = sampler_.allocation([&] { return shared::allocate_touched(slot.size); });
  }

  void live() {
    for (unsigned i = 0; i < setting_.steps; ++i) {
      Slot& slot = slots_[random_.below(static_cast<std::uint32_t>(slots_.size()))];
      sampler_.freeing([&] { shared::release(slot.address, slot.size); });
      fill(slot);
    }
    steps += setting_.steps;
    ++generations;
    stamp.finish();  // for the whole line so far: a new thread's own time starts at zero
    if constexpr (!std::is_same_v<Sampler, Unsampled>) {
      double lived = stamp.end - stamp.start;
      if (setting_.every > 0 && lived >= static_cast<double>(rows.size() + 1) * setting_.every)
        rows.push_back({lived, sampler_.take_stretch(), static_cast<double>(resident_kb())});
    }
    if (stamp.end - stamp.start < setting_.seconds || (setting_.every > 0 && rows.size() < kMinRows)) {
      start_detached([this] { live(); });
    } else {
      running.fetch_sub(1);
    }
  }

  const Setting& setting_;
  std::vector<Slot> slots_;
  Sampler& sampler_;
  Random random_;
};

struct Total {
  double steps = 0;
  double generations = 0;
  std::vector<Row> rows;  // of all lines
};

double median(std::vector<double> values) {
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// A series over the stretches, and its drift.
template <class Value>
std::string fields_of(std::vector<Row> rows, const std::string& name, Value value) {
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.at < b.at; });
  Series series;
  std::vector<double> first, last;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    series.emplace_back(rows[i].at, value(rows[i]));
    if (i < rows.size() / 4) first.push_back(value(rows[i]));
    if (i >= rows.size() - rows.size() / 4) last.push_back(value(rows[i]));
  }
  return field(("every_" + name).c_str(), series) + field(("drift_" + name).c_str(), median(last) / median(first));
}

std::string fields_of(const std::vector<Row>& rows) {
  if (rows.empty()) return {};
  return fields_of(rows, "malloc_p999_ns", [](const Row& row) { return row.stretch.allocation_p999; }) +
         fields_of(rows, "free_p999_ns", [](const Row& row) { return row.stretch.free_p999; }) +
         fields_of(rows, "longest_ns", [](const Row& row) { return row.stretch.longest; }) +
         fields_of(rows, "rss_kb", [](const Row& row) { return row.resident_kb; });
}

template <class Sampler>
Span run(const Setting& setting, std::uint32_t slots, std::vector<Sampler>& samplers, Total& total) {
  std::vector<Chain<Sampler>> chains;
  chains.reserve(samplers.size());
  for (Sampler& sampler : samplers) chains.emplace_back(setting, slots, sampler, chains.size() + 1);
  std::atomic<unsigned> waiting{static_cast<unsigned>(chains.size())};
  running.store(waiting.load());
  for (auto& chain : chains) start_detached([&] { chain.found(waiting); });
  while (running.load() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));

  std::vector<Stamp> stamps;
  for (const auto& chain : chains) {
    stamps.push_back(chain.stamp);
    total.steps += chain.steps;
    total.generations += chain.generations;
    total.rows.insert(total.rows.end(), chain.rows.begin(), chain.rows.end());
  }
  return span_of(stamps);
}

}  // namespace

int main(int count, char** values) {
  Arguments arguments(count, values);
  unsigned threads = arguments.threads();
  std::uint32_t smallest = arguments.count("min", 8);
  std::uint32_t largest = arguments.count("max", 512, smallest);
  std::uint32_t slots = arguments.count("slots", 10'000);
  Setting setting{smallest, largest - smallest + 1, arguments.count("steps", 50'000), arguments.seconds("seconds", 10),
                  arguments.seconds("every", 0)};
  std::string latency = arguments.text("latency", "");
  if (setting.every > 0 && latency.empty()) arguments.refuse("--every needs --latency FILE");
  arguments.finish();

  Total total;
  Sampled sampled = run_sampled(latency, threads, [&](auto& samplers) { return run(setting, slots, samplers, total); });
  report("larson", threads, total.steps, sampled.span,
         field("generations", total.generations) + sampled.fields + fields_of(total.rows));
}

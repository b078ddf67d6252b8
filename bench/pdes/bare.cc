// bare: the yardstick of the simulation engine.  PHOLD as one would write it by hand for one thread: a loop around a
// 4-ary heap of 32-byte events, by value.  No engine, no interface, no statistics, no allocation per event.
//
//   bare [--lps 8192] [--events-per-lp 1] [--remote 0.25] [--mean 1] [--lookahead 0.1] [--end 80] [--seed 1]
//        [--distribution exponential|uniform|bimodal|ties|pareto]
//
// The loop alone is timed: the first events are in the queue when it begins, as the engine builds its LPs before its run.
//
// How it misleads: one model, one event type and a payload of 8 bytes that travels in the queue; a queue of larger
// events by value would be slower.  The stream of random numbers is not the engine's, so the number of events differs
// by chance, and only times per event can be compared.
#include <bit>
#include <cmath>
#include <memory>
#include <new>

#include "../workloads/common.h"

namespace {

enum class Distribution { exponential, uniform, bimodal, ties, pareto };

struct Event {
  double time;
  std::uint64_t tie;   // source LP and its count of events: no two events are equal
  std::uint64_t hops;  // the payload
  std::uint32_t destination;
};
static_assert(sizeof(Event) == 32);

// Times are not negative, so their bits order them: one comparison of 128 bits instead of two that mispredict.
using Order = unsigned __int128;
inline Order order(const Event& event) { return Order{std::bit_cast<std::uint64_t>(event.time)} << 64 | event.tie; }

// The children of node i are 4i+1 to 4i+4.  Storage begins three events before the root, so that each family of four
// shares two cache lines.
class Heap {
 public:
  explicit Heap(std::size_t capacity)
      : memory_(static_cast<Event*>(::operator new((capacity + 8) * sizeof(Event), std::align_val_t{128}))),
        nodes_(memory_.get() + 3) {}

  bool empty() const { return size_ == 0; }

  void push(const Event& event) {
    std::size_t hole = size_++;
    for (Order mine = order(event); hole > 0;) {
      std::size_t parent = (hole - 1) / 4;
      if (order(nodes_[parent]) < mine) break;
      nodes_[hole] = nodes_[parent];
      hole = parent;
    }
    nodes_[hole] = event;
  }

  Event pop() {
    Event first = nodes_[0];
    if (--size_ > 0) sink(nodes_[size_]);
    return first;
  }

 private:
  // The hole at the root moves down until the event fits.
  void sink(Event event) {
    std::size_t hole = 0;
    for (Order mine = order(event);;) {
      std::size_t least = least_child(hole);
      if (least == 0 || mine < order(nodes_[least])) break;
      nodes_[hole] = nodes_[least];
      hole = least;
    }
    nodes_[hole] = event;
  }

  // The smallest child; 0 if it has none.  For a full family this takes no branch that could mispredict.
  std::size_t least_child(std::size_t parent) const {
    std::size_t first = 4 * parent + 1;
    if (first + 3 < size_) [[likely]] {
      Order a = order(nodes_[first]), b = order(nodes_[first + 1]);
      Order c = order(nodes_[first + 2]), d = order(nodes_[first + 3]);
      std::size_t left = first + (b < a), right = first + 2 + (d < c);
      return (d < c ? d : c) < (b < a ? b : a) ? right : left;
    }
    if (first >= size_) return 0;
    std::size_t least = first;
    for (std::size_t child = first + 1; child < size_; ++child)
      if (order(nodes_[child]) < order(nodes_[least])) least = child;
    return least;
  }

  struct Free {
    void operator()(Event* memory) const { ::operator delete(memory, std::align_val_t{128}); }
  };
  std::unique_ptr<Event, Free> memory_;
  Event* nodes_;
  std::size_t size_ = 0;
};

struct Lp {
  std::uint64_t random;
  std::uint32_t sent = 0;
};

inline std::uint64_t bits(Lp& lp) {  // splitmix64
  std::uint64_t z = lp.random += 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}
inline double uniform(Lp& lp) { return static_cast<double>(bits(lp) >> 11) * 0x1p-53; }
inline std::uint32_t below(Lp& lp, std::uint32_t limit) {
  return static_cast<std::uint32_t>(static_cast<unsigned __int128>(bits(lp)) * limit >> 64);
}
inline double exponential(Lp& lp, double mean) { return -mean * std::log(1 - uniform(lp)); }

// The part of a delay beyond the lookahead; mean: of that part.
inline double random_part(Lp& lp, Distribution distribution, double mean) {
  switch (distribution) {
    case Distribution::exponential: return exponential(lp, mean);
    case Distribution::uniform: return 2 * mean * uniform(lp);
    case Distribution::bimodal: return exponential(lp, mean * (uniform(lp) < 0.9 ? 0.1 : 9.1));
    case Distribution::ties: return mean;
    case Distribution::pareto: return mean / 2 / std::sqrt(1 - uniform(lp));  // exponent 2: infinite variance
  }
  return mean;
}

struct Parameters {
  std::uint32_t lps, events_per_lp;
  double remote, mean, lookahead, end;  // mean: of the random part of a delay
  std::uint64_t seed;
};

struct Outcome {
  std::uint64_t executed;
  bench::Span span;
};

template <Distribution distribution>
Outcome simulate(const Parameters& parameters) {
  const auto [count, events_per_lp, remote, mean, lookahead, end, seed] = parameters;
  std::vector<Lp> lps(count);
  Heap pending(std::size_t{count} * events_per_lp);
  auto schedule = [&, lookahead, mean, end](Lp& source, std::uint32_t id, std::uint32_t destination, double now,
                                            std::uint64_t hops) {
    double time = now + lookahead + random_part(source, distribution, mean);
    if (time < end) pending.push({time, std::uint64_t{id} << 32 | source.sent++, hops, destination});
  };
  for (std::uint32_t id = 0; id < count; ++id) {
    Lp seeds{(seed << 32) + id};
    lps[id].random = bits(seeds);
    for (std::uint32_t i = 0; i < events_per_lp; ++i) schedule(lps[id], id, id, 0, 0);
  }
  std::uint64_t executed = 0;
  auto span = bench::run_here([&, remote, count] {
    for (; !pending.empty(); ++executed) {
      Event event = pending.pop();
      Lp& lp = lps[event.destination];
      bool leaves = uniform(lp) < remote;
      schedule(lp, event.destination, leaves ? below(lp, count) : event.destination, event.time, event.hops + 1);
    }
  });
  return {executed, span};
}

Outcome simulate(const std::string& distribution, const Parameters& parameters) {
  if (distribution == "uniform") return simulate<Distribution::uniform>(parameters);
  if (distribution == "bimodal") return simulate<Distribution::bimodal>(parameters);
  if (distribution == "ties") return simulate<Distribution::ties>(parameters);
  if (distribution == "pareto") return simulate<Distribution::pareto>(parameters);
  return simulate<Distribution::exponential>(parameters);
}

}  // namespace

int main(int count, char** values) {
  bench::Arguments arguments(count, values);
  Parameters parameters{};
  parameters.lps = arguments.count("lps", 8192);
  parameters.events_per_lp = arguments.count("events-per-lp", 1);
  parameters.remote = arguments.real("remote", 0.25, 0, 1);
  parameters.lookahead = arguments.real("lookahead", 0.1, 0, 1e9);
  double mean = arguments.real("mean", 1, 1e-9, 1e9);
  parameters.end = arguments.real("end", 80, 0, 1e12);
  parameters.seed = arguments.count("seed", 1, 0);
  auto distribution = arguments.choice("distribution", {"exponential", "uniform", "bimodal", "ties", "pareto"});
  arguments.finish();
  parameters.mean = mean - parameters.lookahead;
  if (parameters.mean < 0) arguments.refuse("--lookahead is larger than --mean");

  auto [executed, span] = simulate(distribution, parameters);
  if (executed == 0) arguments.refuse("no event comes before --end");
  double events = static_cast<double>(executed);
  bench::report("bare", 1, events, span,
                bench::field("events", events) + bench::field("events_per_s", events / span.elapsed));
}

// The same digest and the same statistics, whoever runs which LP and whatever the run is made of.
#include <gtest/gtest.h>

#include "pdes/simulation.h"

namespace pdes {
namespace {

struct Small {
  std::uint32_t hops;
};
struct Large {
  std::uint64_t numbers[20];
};
struct Pulse {};

// Three kinds of events, ties of all kinds, delays of 0 to itself, other priorities, sums of doubles.
struct Node {
  using Context = pdes::Context<Small, Large, Pulse>;
  Tally waited{};
  std::uint64_t state = 0;

  void start(Context& context) {
    context.send_self(static_cast<Time>(context.random().integer(3)), Pulse{});
    context.send_self(context.random().exponential(1), Small{0});
  }
  void on(Context& context, const Pulse&) {  // ticks at whole times
    context.send_self(1, Pulse{}, static_cast<Priority>(state % 3));
    context.send(other(context), 1 + static_cast<Time>(state % 2), Small{1}, static_cast<Priority>(context.id() % 4));
  }
  void on(Context& context, const Small& small) {
    state = state * 31 + small.hops;
    waited.add(context.random().exponential(0.1));
    if (small.hops % 3 == 0) context.send_self(0, Large{{state}});
    else if (small.hops < 20) context.send(other(context), 0.1 + context.random().exponential(0.5), Small{small.hops + 1});
  }
  void on(Context& context, const Large& large) {
    state ^= large.numbers[0] + 1;
    context.send(other(context), 0.1 + context.random().exponential(1), Small{static_cast<std::uint32_t>(state % 20) + 1});
  }
  LpId other(Context& context) const {
    auto to = static_cast<LpId>(context.random().integer(context.lp_count()));
    return to == context.id() ? (to + 1) % context.lp_count() : to;
  }
  void report(Report& report) const {
    report.tally("waited", waited);
    report.count("state", static_cast<std::int64_t>(state % 1000));
  }
};

Options basic() {
  Options options;
  options.end = 30;
  options.lookahead = 0.1;
  return options;
}

Result run(const Options& options, LpId lps = 300) {
  Simulation simulation(options);
  simulation.add<Node>(lps, [](LpId) { return Node{}; });
  return simulation.run();
}

void expect_same(const Result& result, const Result& expected, const std::string& what) {
  EXPECT_EQ(result.digest, expected.digest) << what;
  EXPECT_EQ(result.total.events, expected.total.events) << what;
  EXPECT_EQ(result.events_by_type, expected.events_by_type) << what;
  EXPECT_EQ(result.statistics.sum_of("waited"), expected.statistics.sum_of("waited")) << what;
  EXPECT_EQ(result.statistics.digest(), expected.statistics.digest()) << what;
}

TEST(Determinism, ThreadsQueuesSynchronisationAndPartition) {
  Result expected = run(basic());
  EXPECT_GT(expected.total.events, 10000u);
  for (unsigned threads : {1, 2, 3, 4, 8}) {
    for (Queue queue : {Queue::wheel, Queue::heap}) {
      for (Sync sync : {Sync::windows, Sync::neighbours}) {
        for (Partitioning partitioning : {Partitioning::blocks, Partitioning::round_robin, Partitioning::random}) {
          Options options = basic();
          options.threads = threads;
          options.queue = queue;
          options.sync = sync;
          options.partitioning = partitioning;
          expect_same(run(options), expected,
                      std::to_string(threads) + " threads, queue " + std::to_string(static_cast<int>(queue)) + ", sync " +
                          std::to_string(static_cast<int>(sync)) + ", partitioning " +
                          std::to_string(static_cast<int>(partitioning)));
        }
      }
    }
  }
}

TEST(Determinism, Allocators) {
  Result expected = run(basic());
  for (unsigned threads : {1, 2}) {
    for (Allocator allocator : {Allocator::hmalloc, Allocator::malloc, Allocator::free_list}) {
      for (Blocks blocks : {Blocks::automatic, Blocks::dense, Blocks::lines}) {
        Options options = basic();
        options.threads = threads;
        options.allocator = allocator;
        options.blocks = blocks;
        expect_same(run(options), expected, "allocator " + std::to_string(static_cast<int>(allocator)));
      }
    }
  }
}

// What a run's results do depend on, they depend on with any number of threads.
TEST(Determinism, SeedGeneratorTiesAndLookaheadChangeTheDigest) {
  std::vector<std::uint64_t> digests;
  for (unsigned threads : {1, 3}) {
    std::vector<std::uint64_t> now;
    auto with = [&](auto change) {
      Options options = basic();
      options.threads = threads;
      change(options);
      now.push_back(run(options).digest);
    };
    with([](Options&) {});
    with([](Options& options) { options.seed = 2; });
    with([](Options& options) { options.generator = Generator::philox; });
    with([](Options& options) { options.ties = Ties::hashed; });
    with([](Options& options) { options.end = 29; });
    if (digests.empty()) digests = now;
    EXPECT_EQ(now, digests);
  }
  std::sort(digests.begin(), digests.end());
  EXPECT_EQ(std::unique(digests.begin(), digests.end()), digests.end());
}

// One draw more or one event less must show.
TEST(Determinism, TheDigestKnowsTheOrder) {
  struct Pair {
    using Context = pdes::Context<Small>;
    bool swapped;
    void start(Context& context) {
      context.send_self(1, Small{1}, swapped ? 1 : 0);
      context.send_self(1, Small{2}, swapped ? 0 : 1);
    }
    void on(Context&, const Small&) {}
  };
  std::uint64_t digests[2];
  for (bool swapped : {false, true}) {
    Options options = basic();
    Simulation simulation(options);
    simulation.add<Pair>(1, [swapped](LpId) { return Pair{swapped}; });
    digests[swapped] = simulation.run().digest;
  }
  EXPECT_NE(digests[0], digests[1]);
}

}  // namespace
}  // namespace pdes

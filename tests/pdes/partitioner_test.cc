// Partitioning::graph: what the engine makes of who may send to whom, and of what a partitioner says.  METIS's own part:
// metis_test.cc.
#include <gtest/gtest.h>

#include <atomic>
#include <optional>

#include "engine/owners.h"
#include "in_process_ranks.h"
#include "simulations.h"

namespace pdes {
namespace {

using test::error_of;
using Owners = std::vector<std::uint16_t>;

struct Token {
  std::uint64_t hops;
};

// Sends to the next one but one.
struct Hopper {
  using Context = pdes::Context<Token>;
  std::uint64_t seen = 0;
  void start(Context& context) { context.send_self(context.random().exponential(1), Token{0}); }
  void on(Context& context, const Token& token) {
    seen = seen * 31 + token.hops;
    context.send((context.id() + 2) % context.lp_count(), 1 + context.random().exponential(1), Token{token.hops + 1});
  }
  void report(Report& report) const { report.count("seen", static_cast<std::int64_t>(seen % 1000)); }
};

constexpr LpId kLps = 20;
void next_but_one(LpId id, const std::function<void(LpId)>& to) { to((id + 2) % kLps); }

// Even ids and odd ones have nothing to do with each other.
Owners by_parity(const LpGraph& graph, unsigned threads) {
  Owners owner(graph.size());
  for (LpId id = 0; id < graph.size(); ++id) owner[id] = static_cast<std::uint16_t>(id % 2 * (threads - 1));
  return owner;
}

struct Trial {
  Options options{.end = 30, .lookahead = 1, .threads = 2, .partitioning = Partitioning::graph, .balance = Balance::off};
  Simulation::Neighbours neighbours = next_but_one;
  Partitioner partitioner = by_parity;

  Result run(Ranks* ranks = nullptr) const {
    Simulation simulation(options);
    simulation.add<Hopper>(kLps, [](LpId) { return Hopper{}; });
    simulation.set_neighbours(neighbours);
    simulation.set_partitioner(partitioner);
    return simulation.run(ranks);
  }
};

TEST(Graph, HasEachLinkOnceAtBothEnds) {
  const std::vector<std::vector<LpId>> declared{{0, 1, 3}, {0}, {}, {2, 2}};
  const LpGraph graph = graph_of(4, [&](LpId id, const auto& to) {
    for (const LpId other : declared[id]) to(other);
  });
  EXPECT_EQ(graph.first, (std::vector<std::uint64_t>{0, 2, 3, 4, 6}));
  EXPECT_EQ(graph.to, (std::vector<LpId>{1, 3, 0, 3, 0, 2}));
  EXPECT_EQ(graph.weights, (std::vector<std::uint32_t>{2, 1, 2, 2, 1, 2}));
  EXPECT_EQ(error_of([] { graph_of(4, [](LpId, const auto& to) { to(4); }); }),
            "LP 0 has LP 4 as neighbour: there are only 4 LPs");
}

TEST(Graph, IsDividedAsThePartitionerSaysAndChangesNoResult) {
  const Result alone = Trial{.options{.end = 30, .lookahead = 1}}.run();
  for (const Sync sync : {Sync::windows, Sync::neighbours}) {
    Trial trial;
    trial.options.sync = sync;
    const Result divided = trial.run();
    test::expect_same(divided, alone);
    EXPECT_EQ(divided.total.crossed, 0u);
    trial.options.partitioning = Partitioning::blocks;
    EXPECT_GT(trial.run().total.crossed, 0u);
  }
}

TEST(Graph, IsNotDividedForOneThread) {
  Trial trial{.partitioner = [](const LpGraph&, unsigned) -> Owners { throw Error("nobody asked"); }};
  trial.options.threads = 1;
  EXPECT_EQ(error_of([&] { trial.run(); }), "no error");
}

TEST(Graph, IsRefusedWhereThereIsNone) {
  for (const unsigned threads : {1u, 2u}) {
    Trial none{.neighbours = {}};
    none.options.threads = threads;
    EXPECT_EQ(error_of([&] { none.run(); }), "there is no graph to divide among threads: every LP may send to every other");
  }
}

TEST(Graph, APartitionerMustGiveEachLpAThread) {
  for (const Owners& given : {Owners(kLps - 1), Owners(kLps + 1), Owners(kLps, 2)}) {
    Trial trial{.partitioner = [&](const LpGraph&, unsigned) { return given; }};
    EXPECT_EQ(error_of([&] { trial.run(); }), "the partitioner did not give each LP one of the threads");
  }
}

TEST(Graph, IsDividedByTheFirstRankForAll) {
  const Result alone = Trial{.options{.end = 30, .lookahead = 1}}.run();
  std::atomic<int> asked = 0;
  Trial trial;
  trial.partitioner = [&](const LpGraph& graph, unsigned threads) {
    EXPECT_EQ(threads, 6u);
    Owners owner(graph.size());
    for (auto& thread : owner) thread = static_cast<std::uint16_t>(asked * 5);  // another answer each time
    ++asked;
    owner[3] = 5;
    return owner;
  };
  std::optional<Result> first;
  test::on_ranks(3, [&](std::size_t rank, Ranks& ranks) {
    const Result mine = trial.run(&ranks);
    if (rank == 0) first = mine;
  });
  EXPECT_EQ(asked, 1);
  test::expect_same(*first, alone);
}

TEST(Graph, ThatTheFirstRankCannotDivideEndsAll) {
  Trial trial{.partitioner = [](const LpGraph&, unsigned) -> Owners { throw Error("too large"); }};
  std::vector<std::string> errors(3);
  test::on_ranks(3, [&](std::size_t rank, Ranks& ranks) { errors[rank] = error_of([&] { trial.run(&ranks); }); });
  const std::string elsewhere = "the run cannot start on the first rank";
  EXPECT_EQ(errors, (std::vector<std::string>{"too large", elsewhere, elsewhere}));
}

}  // namespace
}  // namespace pdes

// The same digest and the same statistics, whoever runs which LP and whatever the run is made of.
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "in_process_ranks.h"
#include "simulations.h"

namespace pdes {
namespace {

using test::expect_same;

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
    context.send(other(context), 0.05, Small{1});  // first events need no lookahead
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

const Options kBasic{.end = 30, .lookahead = 0.1};

Result run(const Options& options, LpId lps = 300) {
  return test::run(options, lps, [](LpId) { return Node{}; });
}

using How = std::tuple<unsigned, Queue, Sync, Partitioning, Allocator, Blocks>;
class Engine : public testing::TestWithParam<How> {};

TEST_P(Engine, ChangesNoResult) {
  const auto [threads, queue, sync, partitioning, allocator, blocks] = GetParam();
  const Options how{.end = 30,
                    .lookahead = 0.1,
                    .threads = threads,
                    .allocator = allocator,
                    .blocks = blocks,
                    .queue = queue,
                    .sync = sync,
                    .partitioning = partitioning};
  expect_same(run(how), run(kBasic));
  if (threads == 8) expect_same(run(how, 3), run(kBasic, 3));  // some have no LP
}

using testing::Values;
INSTANTIATE_TEST_SUITE_P(Threads, Engine,
                         testing::Combine(Values(1, 2, 3, 4, 8), Values(Queue::wheel, Queue::heap),
                                          Values(Sync::windows, Sync::neighbours),
                                          Values(Partitioning::blocks, Partitioning::round_robin, Partitioning::random),
                                          Values(Allocator::hmalloc), Values(Blocks::automatic)));
INSTANTIATE_TEST_SUITE_P(Allocators, Engine,
                         testing::Combine(Values(1, 2), Values(Queue::wheel), Values(Sync::windows),
                                          Values(Partitioning::blocks),
                                          Values(Allocator::hmalloc, Allocator::malloc, Allocator::free_list),
                                          Values(Blocks::automatic, Blocks::dense, Blocks::lines)));

// What a run's results do depend on, they depend on with any number of threads.
TEST(Results, DependOnSeedGeneratorTiesAndEnd) {
  std::set<std::uint64_t> digests;
  for (Options how : {kBasic, Options{.end = 30, .lookahead = 0.1, .seed = 2},
                      Options{.end = 30, .lookahead = 0.1, .generator = Generator::philox},
                      Options{.end = 30, .lookahead = 0.1, .ties = Ties::hashed}, Options{.end = 29, .lookahead = 0.1}}) {
    const std::uint64_t alone = run(how).digest;
    EXPECT_TRUE(digests.insert(alone).second);
    how.threads = 3;
    EXPECT_EQ(run(how).digest, alone);
  }
}

// ---- Ranks. ----------------------------------------------------------------------------------------------------

// What each rank's simulation comes to, or its error.
struct Outcome {
  Result result;
  std::string error;
};

template <class Make>
std::vector<Outcome> run_ranks(unsigned ranks, unsigned threads, const Make& make) {
  std::vector<Outcome> outcomes(ranks);
  test::on_ranks(ranks, [&](std::size_t rank, Ranks& mine) {
    Simulation simulation({.end = 30, .lookahead = 0.1, .threads = threads});
    simulation.add<std::invoke_result_t<Make, LpId>>(40, make);
    outcomes[rank].error = test::error_of([&] { outcomes[rank].result = simulation.run(&mine); });
  });
  return outcomes;
}

TEST(InProcessRanks, TheSameAnswerOnAnyNumber) {
  const Result alone = run(kBasic, 40);
  for (auto [ranks, threads] : {std::pair{2u, 1u}, {2u, 2u}, {3u, 1u}, {4u, 2u}, {3u, 20u}}) {  // some have no LP
    SCOPED_TRACE(testing::Message() << ranks << " ranks of " << threads << " threads");
    expect_same(run_ranks(ranks, threads, [](LpId) { return Node{}; })[0].result, alone);
  }
}

TEST(InProcessRanks, AnLpThatCannotBeBuiltEndsAll) {
  for (unsigned threads : {1u, 2u}) {
    const auto outcomes = run_ranks(2, threads, [](LpId id) { return id == 39 ? throw Error("no LP 39") : Node{}; });
    EXPECT_EQ(outcomes[0].error, "the run failed on another rank");
    EXPECT_EQ(outcomes[1].error, "no LP 39");
  }
}

struct Mute : Node {
  bool fails = false;
  void report(Report& report) const {
    if (fails) throw Error("no words");
    Node::report(report);
  }
};

TEST(InProcessRanks, AnLpThatCannotReportEndsAll) {
  for (const LpId mute : {1u, 39u}) {
    const auto outcomes = run_ranks(3, 2, [=](LpId id) { return Mute{{}, id == mute}; });
    for (std::size_t rank = 0; rank < 3; ++rank)
      EXPECT_EQ(outcomes[rank].error, rank == (mute == 1 ? 0 : 2) ? "no words" : "the run failed on another rank");
  }
}

// The first rank finds out when it merges what others have reported.
struct Divided : Node {
  bool counts = false;
  void report(Report& report) const { counts ? report.count("seen", 1) : report.sum("seen", 1); }
};

TEST(InProcessRanks, ThatReportDifferentThingsUnderOneNameEndAll) {
  const auto outcomes = run_ranks(2, 1, [](LpId id) { return Divided{{}, id < 20}; });
  EXPECT_EQ(outcomes[0].error, "statistic 'seen' is used for two kinds of numbers");
  EXPECT_EQ(outcomes[1].error, "the run failed on another rank");
}

}  // namespace
}  // namespace pdes

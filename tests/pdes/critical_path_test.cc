// The longest chain of events, against models of which it is known, and against one that finds it itself.
#include <gtest/gtest.h>

#include <algorithm>

#include "in_process_ranks.h"
#include "simulations.h"

namespace pdes {
namespace {

struct Step {
  std::uint64_t chain;  // that ends with its sender
};
using StepContext = Context<Step>;

// Sends itself an event in each unit of time.
struct Loner {
  using Context = StepContext;
  void start(Context& context) { context.send_self(1, Step{}); }
  void on(Context& context, const Step&) { context.send_self(1, Step{}); }
};

// One event goes round, and everybody has some of its own.
struct Relay {
  using Context = StepContext;
  void start(Context& context) {
    if (context.id() == 0) context.send(1, 1, Step{});
  }
  void on(Context& context, const Step&) { context.send((context.id() + 1) % context.lp_count(), 1, Step{}); }
};

// Half of them have all the work.
struct Skewed {
  using Context = StepContext;
  bool works = false;
  void start(Context& context) {
    for (int i = 0; i < (works ? 8 : 0); ++i) context.send_self(1, Step{});
  }
  void on(Context& context, const Step&) { context.send_self(1, Step{}); }
};

// Sends to anybody, itself too, at any time and priority; each event brings along how long its sender's chain is.
struct Gossip {
  using Context = StepContext;
  std::uint64_t chain = 0;
  void start(Context& context) {
    for (int i = 0; i < 2; ++i) pass_on(context);
  }
  void on(Context& context, const Step& step) {
    chain = std::max(chain, step.chain) + 1;
    if (context.random().uniform() < 0.9) pass_on(context);
    if (context.random().uniform() < 0.1) pass_on(context);
  }
  void report(Report& report) const {
    Tally chains;
    chains.add(static_cast<double>(chain));
    report.tally("chain", chains);
  }

 private:
  void pass_on(Context& context) const {
    const auto to = static_cast<LpId>(context.random().uniform() * context.lp_count());
    const auto delay = static_cast<double>(1 + static_cast<int>(context.random().uniform() * 4)) * 0.5;
    context.send(to, delay, Step{chain}, static_cast<Priority>(context.random().uniform() * 3));
  }
};

Options measured(Time end) { return {.end = end, .lookahead = 0.5, .measure_path = true}; }

TEST(CriticalPath, OfThoseWhoKeepToThemselvesIsOneOfThem) {
  const Result result = test::run(measured(100), 8, [](LpId) { return Loner(); });
  EXPECT_EQ(result.path.events, 99u);
  EXPECT_DOUBLE_EQ(result.path.parallelism, 8);
  EXPECT_EQ(result.path.last, "LP 0 (Loner)");
}

TEST(CriticalPath, OfOneEventThatGoesRoundIsAll) {
  const Result result = test::run(measured(100), 7, [](LpId) { return Relay(); });
  EXPECT_EQ(result.path.events, 99u);
  EXPECT_DOUBLE_EQ(result.path.parallelism, 1);
  EXPECT_EQ(result.path.last, "LP 1 (Relay)");
}

TEST(CriticalPath, IsWhatTheEventsThemselvesBringAlong) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    for (const Ties ties : {Ties::by_source, Ties::hashed}) {
      Options how = measured(60);
      how.seed = seed;
      how.ties = ties;
      how.queue = seed % 2 == 0 ? Queue::heap : Queue::wheel;
      const Result result = test::run(how, 12, [](LpId) { return Gossip(); });
      const auto& numbers = result.statistics.numbers();
      ASSERT_EQ(numbers.size(), 1u);
      EXPECT_EQ(static_cast<double>(result.path.events), numbers[0].most) << seed;
      how.measure_path = false;
      const Result unmeasured = test::run(how, 12, [](LpId) { return Gossip(); });
      EXPECT_EQ(unmeasured.digest, result.digest);
      EXPECT_EQ(unmeasured.path.events, 0u);
    }
  }
}

// Events that are sent on one thread are executed on another, LPs move between them, and one thread may work for all.
TEST(CriticalPath, IsTheSameOnAnyThreads) {
  const auto run = [](const Options& how) { return test::run(how, 40, [](LpId) { return Gossip(); }); };
  const Result expected = run(measured(60));
  for (const auto& [sync, gather] : {std::pair{Sync::windows, Gather::off}, std::pair{Sync::windows, Gather::always},
                                     std::pair{Sync::neighbours, Gather::off}}) {
    Options how = measured(60);
    how.threads = 2;
    how.sync = sync;
    how.gather = gather;
    const Result result = run(how);
    test::expect_same(result, expected);
    EXPECT_GT(result.total.crossed, 0u);
    EXPECT_EQ(result.path.events, expected.path.events);
    EXPECT_EQ(result.path.last, expected.path.last);
    EXPECT_EQ(result.path.parallelism, expected.path.parallelism);
  }
}

TEST(CriticalPath, LetsLoadMove) {
  Options how = measured(3000);
  how.threads = 2;
  how.gather = Gather::off;
  const auto make = [](LpId id) { return Skewed{id < 32}; };
  const Result result = test::run(how, 64, make);
  EXPECT_GT(result.total.parted, 0u);
  how.threads = 1;
  EXPECT_EQ(result.path.events, test::run(how, 64, make).path.events);
}

TEST(CriticalPath, OfARunWithoutEventsIsEmpty) {
  const Result result = test::run(measured(0), 3, [](LpId) { return Loner(); });
  EXPECT_EQ(result.path.events, 0u);
  EXPECT_EQ(result.path.parallelism, 0);
}

TEST(CriticalPath, IsMeasuredOnOneRankFromTheBeginning) {
  Options how = measured(10);
  how.resume = "file";
  EXPECT_THROW(test::run(how, 4, [](LpId) { return Loner(); }), Error);
  test::on_ranks(2, [](std::size_t, Ranks& ranks) {
    Simulation simulation(measured(10));
    simulation.add<Loner>(4, [](LpId) { return Loner(); });
    EXPECT_EQ(test::error_of([&] { simulation.run(&ranks); }), "the longest chain of events is measured on one rank");
  });
}

}  // namespace
}  // namespace pdes

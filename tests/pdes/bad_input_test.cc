// What a model or its user may do wrong: a clear error or a correct run, with any number of threads, never a hang.
#include <gtest/gtest.h>

#include <cmath>

#include "simulations.h"

namespace pdes {
namespace {

using test::error_of;

struct Token {};
struct Foreign {};
using TestContext = Context<Token, Foreign>;
using Misdeed = std::function<void(TestContext&)>;

// All LPs tick, and have twice as many events each time; the last one does what the test is about at time 5.
struct Ticker {
  using Context = TestContext;
  static constexpr bool kCheckpoints = false;
  Misdeed misdeed = [](Context&) {};
  void start(Context& context) { context.send_self(1, Token{}); }
  void on(Context& context, const Token&) {
    if (context.now() == 5 && context.id() == context.lp_count() - 1) misdeed(context);
    context.send_self(1, Token{});
    context.send((context.id() + 1) % context.lp_count(), 1, Token{});
  }
};

struct Loner {
  using Context = pdes::Context<Token>;
  void start(Context& context) { context.send_self(1, Token{}); }
  void on(Context& context, const Token&) { context.send_self(1, Token{}); }
};

// From time 1 on it sends itself the next event after its delay.
struct Chain {
  using Context = pdes::Context<Token>;
  Time delay;
  void start(Context& context) { context.send_self(1, Token{}); }
  void on(Context& context, const Token&) { context.send_self(delay, Token{}); }
};

Options options(unsigned threads) { return {.end = 8, .lookahead = 1, .threads = threads}; }

Result run(const Options& how, const Misdeed& misdeed = [](TestContext&) {}) {
  return test::run(how, 6, [&](LpId) { return Ticker{misdeed}; });
}

class Misdeeds : public testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Threads, Misdeeds, testing::Values(1, 2, 5));

TEST_P(Misdeeds, EndTheRunWithALine) {
  const std::pair<Misdeed, const char*> kErrors[] = {
      {[](TestContext&) {}, "no error"},
      {[](TestContext& context) { context.send(4, 0.25, Token{}); },
       "lookahead violation: LP 5 (Ticker), at time 5 on Token from LP 4, sends Token to LP 4 for time 5.25: the delay 0.25 "
       "is "
       "below the lookahead 1"},
      {[](TestContext& context) { context.send_self(-1, Token{}); },
       "LP 5 (Ticker), at time 5 on Token from LP 4, sends Token to LP 5 with delay -1: a delay must be 0 or more"},
      {[](TestContext& context) { context.send(1, std::nan(""), Token{}); },
       "LP 5 (Ticker), at time 5 on Token from LP 4, sends Token to LP 1 with delay nan: a delay must be 0 or more"},
      {[](TestContext& context) { context.send(1, kNever, Token{}); },
       "LP 5 (Ticker), at time 5 on Token from LP 4, sends Token to LP 1 for time inf: a time must be finite"},
      {[](TestContext& context) { context.send_self(kNever, Token{}); },
       "LP 5 (Ticker), at time 5 on Token from LP 4, sends Token to LP 5 for time inf: a time must be finite"},
      {[](TestContext& context) { context.end_after(kNever); },
       "LP 5 (Ticker), at time 5 on Token from LP 4, ends the run after inf: a time must be finite"},
      {[](TestContext& context) { context.send(6, 1, Token{}); },
       "LP 5 (Ticker), at time 5 on Token from LP 4, sends Token to LP 6: there are only 6 LPs"},
      {[](TestContext& context) { context.send(2, 1, Foreign{}); },
       "LP 2 (Ticker), at time 6 on Foreign from LP 5, has no handler for Foreign"},
      {[](TestContext& context) { context.send_self(1, Token{}, 64); },
       "LP 5 (Ticker), at time 5 on Token from LP 4, sends with priority 64: the last is 63"},
  };
  for (const auto& row : kErrors) EXPECT_EQ(error_of([&] { run(options(GetParam()), row.first); }), row.second);
}

TEST_P(Misdeeds, AnExceptionOfTheModelComesOutOfRun) {
  Simulation simulation(options(GetParam()));
  simulation.add<Ticker>(6, [](LpId) { return Ticker{[](auto&) { throw std::out_of_range("of the model"); }}; });
  EXPECT_THROW(simulation.run(), std::out_of_range);
  EXPECT_EQ(simulation.partial().failed_at, "LP 5 (Ticker), at time 5 on Token from LP 4");
  EXPECT_GE(simulation.partial().total.events, 4u * 6);
  EXPECT_LE(simulation.partial().reached, 6);
}

TEST_P(Misdeeds, AreNamedWithTheirSenderWhenTiesAreHashed) {
  Options how = options(GetParam());
  how.ties = Ties::hashed;
  Simulation simulation(how);
  simulation.add<Ticker>(6, [](LpId) { return Ticker{[](auto& context) { context.send(2, 1, Foreign{}); }}; });
  EXPECT_EQ(error_of([&] { simulation.run(); }),
            "LP 2 (Ticker), at time 6 on Foreign from LP 5, has no handler for Foreign");
}

TEST_P(Misdeeds, AtTheStartOfAnLp) {
  struct Early : Loner {
    void start(Context& context) { context.send(context.lp_count(), 0, Token{}); }
  };
  Simulation simulation(options(GetParam()));
  simulation.add<Early>(1, [](LpId) { return Early{}; });
  EXPECT_EQ(error_of([&] { simulation.run(); }), "LP 0 (Early), at its start, sends Token to LP 1: there are only 1 LPs");
}

// What it has seen is no number, and it says so when it is asked.
struct Blind : Loner {
  bool fails = false;
  void on(Context& context, const Token& token) {
    if (fails && context.now() == 5) throw std::out_of_range("of the model");
    Loner::on(context, token);
  }
  void report(Report& report) const { report.sum("seen", std::nan("")); }
};

TEST_P(Misdeeds, AtTheEndOfTheRun) {
  Simulation simulation(options(GetParam()));
  simulation.add<Loner>(3, [](LpId) { return Loner{}; });
  simulation.add<Blind>(3, [](LpId) { return Blind{}; });
  EXPECT_EQ(error_of([&] { simulation.run(); }), "statistic 'seen': nan is not a finite number");
  EXPECT_EQ(simulation.partial().failed_at, "LP 3 (Blind), at the end");
  EXPECT_EQ(simulation.partial().total.events, 7u * 6);
}

// Whoever has failed cannot report either, perhaps; what came first is said.
TEST_P(Misdeeds, AtTheEndHideNoneBefore) {
  Simulation simulation(options(GetParam()));
  simulation.add<Blind>(3, [](LpId id) { return Blind{{}, id == 2}; });
  EXPECT_THROW(simulation.run(), std::out_of_range);
  EXPECT_EQ(simulation.partial().failed_at, "LP 2 (Blind), at time 5 on Token from LP 2");
}

// A chain that never ends, with delays of 0 or ones that vanish beside the time.
TEST_P(Misdeeds, TimeThatStandsStill) {
  for (const Time delay : {0.0, 1e-300}) {
    Options how = options(GetParam());
    how.max_simultaneous = 100'000;
    const auto run = [&] { test::run(how, 6, [&](LpId id) { return Chain{id == 3 ? delay : 1}; }); };
    EXPECT_EQ(error_of(run),
              "time stands still: LP 3 (Chain), at time 1 on Token from LP 3, after more than 100000 events that "
              "followed each other without delay");
  }
}

// What was pending for one time before it came is no chain, however much it is.
TEST_P(Misdeeds, ManyEventsAtOneTimeAreNone) {
  Options how = options(GetParam());
  for (Sync sync : {Sync::windows, Sync::neighbours}) {
    how.sync = sync;
    how.max_simultaneous = 10;
    EXPECT_EQ(error_of([&] { test::run(how, 20'000, [](LpId) { return Loner{}; }); }), "no error");
  }
}

TEST_P(Misdeeds, AnExceptionWhileLpsAreBuilt) {
  const auto make = [](LpId id) { return id == 5 ? throw Error("LP 5 cannot be built") : Ticker{}; };
  EXPECT_EQ(error_of([&] { test::run(options(GetParam()), 6, make); }), "LP 5 cannot be built");
}

TEST_P(Misdeeds, MemoryWithoutEnd) {
  Simulation simulation({.end = 1e6, .lookahead = 1, .threads = GetParam(), .max_memory = 8 << 20});
  simulation.add<Ticker>(6, [](LpId) { return Ticker{}; });
  const std::string error = error_of([&] { simulation.run(); });
  EXPECT_TRUE(error.starts_with("memory limit reached at time ")) << error;
  EXPECT_GT(simulation.partial().peak_pending, 1000u);
}

TEST(BadOptions, AreRefused) {
  const std::pair<Options, const char*> kErrors[] = {
      {{.end = -1}, "the end must be a time of 0 or more"},
      {{.end = std::nan("")}, "the end must be a time of 0 or more"},
      {{.end = kNever}, "the end must be a time of 0 or more"},
      {{.lookahead = -0.5}, "the lookahead must be 0 or more"},
      {{.lookahead = std::nan("")}, "the lookahead must be 0 or more"},
      {{.threads = 0}, "a run needs at least one thread"},
      {{.threads = 5000}, "at most 4096 threads"},
      {{.end = 1e300, .lookahead = 1}, "the lookahead vanishes beside the end: times near the end cannot tell them apart"},
  };
  for (const auto& row : kErrors) EXPECT_EQ(error_of([&] { Simulation simulation(row.first); }), row.second);
}

TEST(BadOptions, NoLps) {
  EXPECT_EQ(error_of([] { Simulation(options(1)).run(); }), "there are no LPs");
  EXPECT_EQ(error_of([] { test::run(options(1), 0, [](LpId) { return Ticker{}; }); }), "there are no LPs");
}

TEST(BadOptions, NoLookaheadIsForOneThread) {
  EXPECT_EQ(error_of([] { run({.end = 8}); }), "no error");
  EXPECT_EQ(error_of([] { run({.end = 8, .threads = 2}); }), "more than one thread or rank needs a lookahead above 0");
}

// Measuring delays must not make a parallel run wrong in silence.
TEST(BadOptions, MeasuringDelaysEnforcesTheLookaheadOnSeveralThreads) {
  const Misdeed early = [](TestContext& context) { context.send(0, 0.25, Token{}); };
  EXPECT_EQ(run({.end = 8, .lookahead = 1, .measure_delays = true}, early).delays.smallest, 0.25);
  EXPECT_THROW(run({.end = 8, .lookahead = 1, .threads = 2, .measure_delays = true}, early), Error);
}

TEST(BadOptions, ASimulationRunsOnce) {
  Simulation simulation(options(1));
  simulation.add<Ticker>(6, [](LpId) { return Ticker{}; });
  simulation.run();
  EXPECT_EQ(error_of([&] { simulation.run(); }), "a simulation runs once");
}

TEST(BadOptions, LpsWithOtherEvents) {
  Simulation simulation(options(1));
  simulation.add<Ticker>(1, [](LpId) { return Ticker{}; });
  EXPECT_EQ(error_of([&] { simulation.add<Loner>(1, [](LpId) { return Loner{}; }); }),
            "Loner has another list of event types than the LPs before it");
}

TEST(BadOptions, MoreLpsThanThereAreNumbers) {
  Simulation simulation(options(1));
  simulation.add<Loner>(kMaxLps - 1, [](LpId) { return Loner{}; });
  EXPECT_EQ(error_of([&] { simulation.add<Loner>(2, [](LpId) { return Loner{}; }); }), "at most 67108864 LPs");
}

// Larger than every delay of the model: nobody sends, so nobody is refused.
TEST(BadOptions, ALookaheadBeyondTheEnd) {
  const Options how{.end = 8, .lookahead = 1000, .threads = 2};
  EXPECT_EQ(test::run(how, 5, [](LpId) { return Loner{}; }).total.events, 5u * 7);
}

}  // namespace
}  // namespace pdes

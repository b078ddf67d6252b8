// What a model or its user may do wrong: a clear error or a correct run, with any number of threads, never a hang.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "pdes/simulation.h"

namespace pdes {
namespace {

struct Token {};
struct Foreign {};

// All LPs tick; the last one does what the test is about at time 5.
struct Ticker {
  using Context = pdes::Context<Token, Foreign>;
  const std::function<void(Context&)>* misdeed;
  void start(Context& context) { context.send_self(1, Token{}); }
  void on(Context& context, const Token&) {
    if (context.now() == 5 && context.id() == context.lp_count() - 1) (*misdeed)(context);
    context.send_self(1, Token{});
    context.send((context.id() + 1) % context.lp_count(), 1, Token{});
  }
};
using Misdeed = std::function<void(Ticker::Context&)>;

Options options(unsigned threads) {
  Options how;
  how.end = 8;
  how.lookahead = 1;
  how.threads = threads;
  return how;
}

std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) { return error.what(); }
  return "no error";
}

std::string error_of(unsigned threads, const Misdeed& misdeed) {
  return error_of([&] {
    Simulation simulation(options(threads));
    simulation.add<Ticker>(6, [&](LpId) { return Ticker{&misdeed}; });
    simulation.run();
  });
}

class Misdeeds : public testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Threads, Misdeeds, testing::Values(1, 2, 5));

TEST_P(Misdeeds, NoneIsNoError) {
  EXPECT_EQ(error_of(GetParam(), [](auto&) {}), "no error");
}
TEST_P(Misdeeds, ADelayBelowTheLookahead) {
  EXPECT_EQ(error_of(GetParam(), [](auto& context) { context.send(4, 0.25, Token{}); }),
            "lookahead violation: LP 5 (Ticker) sends Token to LP 4 at time 5 for time 5.25: the delay 0.25 is below the "
            "lookahead 1");
}
TEST_P(Misdeeds, ADelayBelowZeroToItself) {
  EXPECT_EQ(error_of(GetParam(), [](auto& context) { context.send_self(-1, Token{}); }),
            "LP 5 (Ticker) sends Token to LP 5 at time 5 with delay -1: a delay must be 0 or more");
}
TEST_P(Misdeeds, ADelayThatIsNoNumber) {
  EXPECT_EQ(error_of(GetParam(), [](auto& context) { context.send(1, std::nan(""), Token{}); }),
            "LP 5 (Ticker) sends Token to LP 1 at time 5 with delay nan: a delay must be 0 or more");
}
TEST_P(Misdeeds, AnLpThatIsNotThere) {
  EXPECT_EQ(error_of(GetParam(), [](auto& context) { context.send(6, 1, Token{}); }),
            "LP 5 (Ticker) sends Token to LP 6 at time 5: there are only 6 LPs");
}
TEST_P(Misdeeds, AnEventThatNobodyHandles) {
  EXPECT_EQ(error_of(GetParam(), [](auto& context) { context.send(2, 1, Foreign{}); }),
            "LP 2 (Ticker) has no handler for event Foreign");
}
TEST_P(Misdeeds, APriorityThatIsNotThere) {
  EXPECT_EQ(error_of(GetParam(), [](auto& context) { context.send_self(1, Token{}, 64); }),
            "LP 5 (Ticker) sends with priority 64: the last is 63");
}
TEST_P(Misdeeds, AnExceptionOfTheModelComesOutOfRun) {
  Misdeed misdeed = [](auto&) { throw std::out_of_range("of the model"); };
  Simulation simulation(options(GetParam()));
  simulation.add<Ticker>(6, [&](LpId) { return Ticker{&misdeed}; });
  EXPECT_THROW(simulation.run(), std::out_of_range);
  EXPECT_GE(simulation.partial().total.events, 4u * 6);
  EXPECT_LE(simulation.partial().reached, 6);
}
TEST_P(Misdeeds, AnExceptionWhileLpsAreBuilt) {
  Simulation simulation(options(GetParam()));
  simulation.add<Ticker>(6, [&](LpId id) -> Ticker {
    if (id == 5) throw Error("LP 5 cannot be built");
    return Ticker{};
  });
  EXPECT_EQ(error_of([&] { simulation.run(); }), "LP 5 cannot be built");
}
TEST_P(Misdeeds, MemoryWithoutEnd) {
  Options how = options(GetParam());
  how.end = 1e6;
  how.max_memory = 8 << 20;
  Misdeed breed = [](auto&) {};
  Simulation simulation(how);
  struct Breeder {
    using Context = pdes::Context<Token, Foreign>;
    void start(Context& context) { context.send_self(1, Token{}); }
    void on(Context& context, const Token&) {
      context.send_self(1, Token{});
      context.send((context.id() + 1) % context.lp_count(), 1, Token{});
    }
  };
  simulation.add<Breeder>(6, [](LpId) { return Breeder{}; });
  std::string error = error_of([&] { simulation.run(); });
  EXPECT_EQ(error.rfind("memory limit reached at time ", 0), 0u) << error;
  EXPECT_GT(simulation.partial().peak_pending, 1000u);
}

TEST(BadOptions, AreRefused) {
  auto error = [](auto change) {
    Options how = options(1);
    change(how);
    return error_of([&] { Simulation simulation(how); });
  };
  EXPECT_EQ(error([](Options& how) { how.end = -1; }), "the end must be a time of 0 or more");
  EXPECT_EQ(error([](Options& how) { how.end = std::nan(""); }), "the end must be a time of 0 or more");
  EXPECT_EQ(error([](Options& how) { how.end = kNever; }), "the end must be a time of 0 or more");
  EXPECT_EQ(error([](Options& how) { how.lookahead = -0.5; }), "the lookahead must be 0 or more");
  EXPECT_EQ(error([](Options& how) { how.lookahead = std::nan(""); }), "the lookahead must be 0 or more");
  EXPECT_EQ(error([](Options& how) { how.threads = 0; }), "a run needs at least one thread");
  EXPECT_EQ(error([](Options& how) { how.threads = 5000; }), "at most 4096 threads");
  EXPECT_EQ(error([](Options& how) { how.end = 1e300; }),
            "the lookahead vanishes beside the end: times near the end cannot tell them apart");
}

TEST(BadOptions, NoLps) {
  EXPECT_EQ(error_of([] { Simulation(options(1)).run(); }), "there are no LPs");
  Simulation simulation(options(1));
  simulation.add<Ticker>(0, [](LpId) { return Ticker{}; });
  EXPECT_EQ(error_of([&] { simulation.run(); }), "there are no LPs");
}

TEST(BadOptions, NoLookaheadIsForOneThread) {
  Misdeed none = [](auto&) {};
  for (unsigned threads : {1, 2}) {
    Options how = options(threads);
    how.lookahead = 0;
    Simulation simulation(how);
    simulation.add<Ticker>(6, [&](LpId) { return Ticker{&none}; });
    EXPECT_EQ(error_of([&] { simulation.run(); }),
              threads == 1 ? "no error" : "more than one thread or rank needs a lookahead above 0");
  }
}

// Measuring delays must not make a parallel run wrong in silence.
TEST(BadOptions, MeasuringDelaysEnforcesTheLookaheadOnSeveralThreads) {
  Misdeed early = [](auto& context) { context.send(0, 0.25, Token{}); };
  for (unsigned threads : {1, 2}) {
    Options how = options(threads);
    how.measure_delays = true;
    Simulation simulation(how);
    simulation.add<Ticker>(6, [&](LpId) { return Ticker{&early}; });
    if (threads == 1) EXPECT_EQ(simulation.run().delays.smallest, 0.25);
    else EXPECT_THROW(simulation.run(), Error);
  }
}

TEST(BadOptions, ASimulationRunsOnce) {
  Misdeed none = [](auto&) {};
  Simulation simulation(options(1));
  simulation.add<Ticker>(6, [&](LpId) { return Ticker{&none}; });
  simulation.run();
  EXPECT_EQ(error_of([&] { simulation.run(); }), "a simulation runs once");
}

TEST(BadOptions, LpsWithOtherEvents) {
  struct Other {
    using Context = pdes::Context<Token>;
    void start(Context&) {}
  };
  Misdeed none = [](auto&) {};
  Simulation simulation(options(1));
  simulation.add<Ticker>(1, [&](LpId) { return Ticker{&none}; });
  EXPECT_EQ(error_of([&] { simulation.add<Other>(1, [](LpId) { return Other{}; }); }),
            "Other has another list of event types than the LPs before it");
}

TEST(BadOptions, MoreThreadsThanLps) {
  Misdeed none = [](auto&) {};
  std::uint64_t digest = 0;
  for (unsigned threads : {1, 6, 7, 40}) {
    Simulation simulation(options(threads));
    simulation.add<Ticker>(6, [&](LpId) { return Ticker{&none}; });
    Result result = simulation.run();
    if (digest == 0) digest = result.digest;
    EXPECT_EQ(result.digest, digest) << threads << " threads";
  }
}

// Larger than every delay of the model: nobody sends, so nobody is refused.
TEST(BadOptions, ALookaheadBeyondTheEnd) {
  struct Loner {
    using Context = pdes::Context<Token>;
    void start(Context& context) { context.send_self(1, Token{}); }
    void on(Context& context, const Token&) { context.send_self(1, Token{}); }
  };
  Options how = options(2);
  how.lookahead = 1000;
  Simulation simulation(how);
  simulation.add<Loner>(5, [](LpId) { return Loner{}; });
  EXPECT_EQ(simulation.run().total.events, 5u * 7);
}

}  // namespace
}  // namespace pdes

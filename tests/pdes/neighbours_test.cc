#include "engine/neighbours.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "pdes/pdes.h"

namespace pdes {
namespace {

struct Token {
  std::uint64_t hops;
};

// Tokens that walk round a ring, forwards, after stays of very different length.
struct Site {
  using Context = pdes::Context<Token>;
  LpId next;
  Time stay;       // mean
  Time first = 0;  // of the token that starts here; below 0: none
  std::uint64_t seen = 0;

  void start(Context& context) {
    if (first >= 0) context.send_self(first, Token{0});
  }
  void on(Context& context, const Token& token) {
    ++seen;
    if (context.random().chance(0.5)) context.send_self(context.random().exponential(stay), Token{token.hops + 1});
    else context.send(next, context.lookahead() + context.random().exponential(stay), Token{token.hops + 1});
  }
  void report(Report& report) const { report.count("seen", static_cast<std::int64_t>(seen)); }
};

struct Ring {
  LpId sites = 16;
  Time stay = 1, end = 300, lookahead = 0.25, first = 0;
  Partitioning partitioning = Partitioning::blocks;
  bool declared = true;

  Result run(unsigned threads, Sync sync = Sync::neighbours) const {
    Options options;
    options.end = end;
    options.lookahead = lookahead;
    options.threads = threads;
    options.sync = sync;
    options.partitioning = partitioning;
    Simulation simulation(options);
    simulation.add<Site>(sites, [this](LpId id) { return Site{(id + 1) % sites, stay, first}; });
    if (declared) simulation.set_neighbours([n = sites](LpId id, const auto& to) { to((id + 1) % n); });
    return simulation.run();
  }
  void expect_the_same(std::initializer_list<unsigned> threads) const {
    const Result alone = run(1);
    EXPECT_GT(alone.total.events, 0u);
    for (unsigned n : threads) {
      const Result together = run(n);
      EXPECT_EQ(together.digest, alone.digest) << n << " threads";
      EXPECT_EQ(together.total.events, alone.total.events) << n << " threads";
      EXPECT_EQ(together.reached, end);
    }
  }
};

TEST(Neighbours, ExecuteWhatOneThreadWould) {
  Ring ring;
  ring.expect_the_same({2, 3, 8});
  ring.declared = false;
  ring.expect_the_same({2, 3, 8});
}

TEST(Neighbours, NeedNoEvenPartition) {
  Ring ring;
  ring.partitioning = Partitioning::round_robin;
  ring.expect_the_same({2, 5});
  ring.sites = 3;  // threads without LPs
  ring.expect_the_same({8});
  ring.declared = false;
  ring.expect_the_same({8});
}

// Millions of lookaheads between two events: creeping would take that many advances.
TEST(Neighbours, JumpOverEmptyTime) {
  Ring ring;
  ring.stay = 1e7;
  ring.end = 1e9;
  ring.first = 1e6;
  ring.sites = 4;
  for (bool declared : {true, false}) {
    ring.declared = declared;
    ring.expect_the_same({2, 4});
    const Result result = ring.run(2);
    EXPECT_LT(result.total.windows, 10000u);
    EXPECT_GT(result.total.events, 100u);
  }
}

// Busy with itself, and sends as early as allowed: who runs ahead further than it may is overtaken.  Some of it at the
// same time, some rounded.
struct Drummer {
  using Context = pdes::Context<Token>;
  void start(Context& context) {
    context.send_self(0, Token{0});
    context.send((context.id() + 1) % context.lp_count(), 0, Token{1});
  }
  void on(Context& context, const Token& token) {
    const LpId next = (context.id() + 1) % context.lp_count();
    if (token.hops > 0) return;
    context.send_self(context.lookahead() / 16, token);
    context.send(next, context.lookahead(), Token{1});
  }
};

TEST(Neighbours, NobodyRunsAhead) {
  for (Time lookahead : {0.1, 0.25}) {
    std::uint64_t expected = 0;
    for (unsigned threads : {1u, 2u, 4u}) {
      Options options;
      options.end = 2000 * lookahead;
      options.lookahead = lookahead;
      options.threads = threads;
      options.sync = Sync::neighbours;
      Simulation simulation(options);
      simulation.add<Drummer>(4, [](LpId) { return Drummer{}; });
      const std::uint64_t digest = simulation.run().digest;
      if (threads == 1) expected = digest;
      EXPECT_EQ(digest, expected) << threads << " threads";
    }
  }
}

// First events may go to anybody, at once.  Later ones may not.
struct Stranger {
  using Context = pdes::Context<Token>;
  LpId friend_of_start, friend_of_later;
  void start(Context& context) { context.send(friend_of_start, 0, Token{0}); }
  void on(Context& context, const Token& token) { context.send(friend_of_later, context.lookahead(), token); }
};

Result strangers(LpId of_start, LpId of_later, unsigned threads = 4) {
  Options options;
  options.end = 10;
  options.lookahead = 0.5;
  options.threads = threads;
  options.sync = Sync::neighbours;
  Simulation simulation(options);
  simulation.add<Stranger>(8, [=](LpId id) { return Stranger{(id + of_start) % 8, (id + of_later) % 8}; });
  simulation.set_neighbours([](LpId id, const auto& to) { to((id + 1) % 8); });
  return simulation.run();
}

TEST(Neighbours, FirstEventsGoToAnybody) { EXPECT_EQ(strangers(4, 1).digest, strangers(4, 1, 1).digest); }

TEST(Neighbours, RefuseASendToAThreadThatWasNotDeclared) {
  try {
    strangers(1, 4);
    FAIL() << "no error";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("(Stranger) sends to LP"), std::string::npos) << text;
    EXPECT_NE(text.find("neighbours it declared"), std::string::npos) << text;
  }
}

TEST(Neighbours, RefuseNeighboursThatAreNoLps) {
  Options options;
  options.end = 1;
  options.lookahead = 0.5;
  options.threads = 2;
  options.sync = Sync::neighbours;
  Simulation simulation(options);
  simulation.add<Drummer>(4, [](LpId) { return Drummer{}; });
  simulation.set_neighbours([](LpId id, const auto& to) { to(id + 1); });
  EXPECT_THROW(simulation.run(), Error);
}

// What an LP throws reaches the caller, though all other threads sleep or wait at the end.
struct Bomb {
  using Context = pdes::Context<Token>;
  Time at;
  void start(Context& context) { context.send_self(0, Token{0}); }
  void on(Context& context, const Token& token) {
    if (context.now() > at) throw std::logic_error("bang");
    if (at < kNever) context.send_self(0.001, token);
  }
};

TEST(Neighbours, PassOnWhatAnLpThrows) {
  for (unsigned threads : {2u, 4u}) {
    Options options;
    options.end = 100;
    options.lookahead = 0.5;
    options.threads = threads;
    options.sync = Sync::neighbours;
    Simulation simulation(options);
    simulation.add<Bomb>(4, [](LpId id) { return Bomb{id == 3 ? 20.0 : kNever}; });
    simulation.set_neighbours([](LpId, const auto&) {});  // nobody waits for anybody
    EXPECT_THROW(simulation.run(), std::logic_error);
  }
}

// The first thread has nothing to do, and still tells of the others' progress and hears that all should stop.
TEST(Neighbours, TellProgressAndStop) {
  Options options;
  options.end = 1e9;
  options.lookahead = 0.5;
  options.threads = 2;
  options.sync = Sync::neighbours;
  options.progress_interval = 0.001;
  Simulation simulation(options);
  simulation.add<Bomb>(2, [](LpId id) { return Bomb{id == 1 ? 1e10 : kNever}; });
  simulation.set_neighbours([](LpId, const auto&) {});
  std::vector<Time> seen;
  simulation.on_progress([&](const Progress& progress) {
    seen.push_back(progress.now);
    if (seen.size() == 20) simulation.stop();
  });
  const Result result = simulation.run();
  EXPECT_TRUE(result.stopped);
  EXPECT_GE(seen.size(), 20u);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_LT(seen.front(), seen.back());
  EXPECT_GT(result.reached, 0);
  EXPECT_LT(result.reached, options.end);
}

TEST(Neighbours, SleepUntilOneClockHasReachedTheirs) {
  Parker parker;
  parker.prepare_to_park(3, 5.0);
  parker.raised(2, 9.0);
  parker.raised(3, 4.0);
  std::atomic<bool> up{false};
  std::thread sleeper([&] {
    parker.park();
    up = true;
  });
  parker.raised(3, 4.9);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(up);
  parker.raised(3, 5.0);
  sleeper.join();
  EXPECT_TRUE(up);
}

}  // namespace
}  // namespace pdes

#include "engine/neighbours.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "simulations.h"

namespace pdes {
namespace {

struct Token {
  std::uint64_t hops;
};
using TestContext = Context<Token>;

// Who may send to the next LP only.
Simulation::Neighbours next_of(LpId lps) {
  return [lps](LpId id, const auto& to) { to((id + 1) % lps); };
}
void nobody(LpId, const std::function<void(LpId)>&) {}

Options options(unsigned threads, Time end, Time lookahead = 0.5) {
  return {.end = end, .lookahead = lookahead, .threads = threads, .sync = Sync::neighbours};
}

// Tokens that walk round a ring, forwards, after stays of very different length.
struct Site {
  using Context = TestContext;
  Time stay, first;
  void start(Context& context) { context.send_self(first, Token{0}); }
  void on(Context& context, const Token& token) {
    const LpId next = (context.id() + 1) % context.lp_count();
    if (context.random().chance(0.5)) context.send_self(context.random().exponential(stay), Token{token.hops + 1});
    else context.send(next, context.lookahead() + context.random().exponential(stay), Token{token.hops + 1});
  }
};

struct Ring {
  LpId sites = 16;
  Time stay = 1, end = 300, first = 0;
  Partitioning partitioning = Partitioning::blocks;
  bool declared = true;

  Result run(unsigned threads) const {
    Options how = options(threads, end, 0.25);
    how.partitioning = partitioning;
    const auto make = [this](LpId) { return Site{stay, first}; };
    return test::run(how, sites, make, declared ? next_of(sites) : Simulation::Neighbours());
  }
  void expect_the_same(std::initializer_list<unsigned> threads) const {
    const Result alone = run(1);
    EXPECT_GT(alone.total.events, 100u);
    for (unsigned n : threads) {
      const Result together = run(n);
      EXPECT_EQ(together.digest, alone.digest) << n << " threads";
      EXPECT_EQ(together.total.events, alone.total.events) << n << " threads";
      EXPECT_EQ(together.reached, end);
    }
  }
};

TEST(Neighbours, ExecuteWhatOneThreadWould) { Ring().expect_the_same({2, 3, 8}); }
TEST(Neighbours, NeedNoBlocks) { Ring{.partitioning = Partitioning::round_robin}.expect_the_same({2, 5}); }
TEST(Neighbours, NeedNotHaveLps) { Ring{.sites = 3}.expect_the_same({8}); }

// Millions of lookaheads between two events: creeping would take that many advances.
TEST(Neighbours, JumpOverEmptyTime) {
  for (bool declared : {true, false}) {
    const Ring ring{.sites = 4, .stay = 1e7, .end = 1e9, .first = 1e6, .declared = declared};
    ring.expect_the_same({2, 4});
    EXPECT_LT(ring.run(2).total.windows, 10000u);
  }
}

// Busy with itself, and sends as early as allowed: who runs ahead further than it may is overtaken.  Some of it at the
// same time, some rounded.
struct Drummer {
  using Context = TestContext;
  void start(Context& context) {
    context.send_self(0, Token{0});
    context.send((context.id() + 1) % context.lp_count(), 0, Token{1});
  }
  void on(Context& context, const Token& token) {
    if (token.hops > 0) return;
    context.send_self(context.lookahead() / 16, token);
    context.send((context.id() + 1) % context.lp_count(), context.lookahead(), Token{1});
  }
};

TEST(Neighbours, NobodyRunsAhead) {
  for (Time lookahead : {0.1, 0.25}) {
    const auto digest = [=](unsigned threads) {
      return test::run(options(threads, 2000 * lookahead, lookahead), 4, [](LpId) { return Drummer{}; }).digest;
    };
    const std::uint64_t alone = digest(1);
    EXPECT_EQ(digest(2), alone);
    EXPECT_EQ(digest(4), alone);
  }
}

// First events may go to anybody, at once.  Later ones may not.
struct Stranger {
  using Context = TestContext;
  LpId friend_of_start, friend_of_later;
  void start(Context& context) { context.send(friend_of_start, 0, Token{0}); }
  void on(Context& context, const Token& token) { context.send(friend_of_later, context.lookahead(), token); }
};

Result strangers(LpId of_start, LpId of_later, unsigned threads = 4) {
  const auto make = [=](LpId id) { return Stranger{(id + of_start) % 8, (id + of_later) % 8}; };
  return test::run(options(threads, 10), 8, make, next_of(8));
}

TEST(Neighbours, FirstEventsGoToAnybody) { EXPECT_EQ(strangers(4, 1).digest, strangers(4, 1, 1).digest); }

TEST(Neighbours, RefuseASendToAThreadThatWasNotDeclared) {
  const std::string error = test::error_of([] { strangers(1, 4); });
  EXPECT_NE(error.find(", sends to LP"), std::string::npos) << error;
  EXPECT_NE(error.find("neighbours it declared"), std::string::npos) << error;
}

TEST(Neighbours, RefuseNeighboursThatAreNoLps) {
  const auto run = [] { test::run(options(2, 1), 4, [](LpId) { return Drummer{}; }, next_of(5)); };
  EXPECT_EQ(test::error_of(run), "LP 3 has LP 4 as neighbour: there are only 4 LPs");
}

// Ticks until its time has come, and throws then.  All other threads sleep or wait at the end.
struct Bomb {
  using Context = TestContext;
  Time at;
  void start(Context& context) { context.send_self(0, Token{0}); }
  void on(Context& context, const Token& token) {
    if (context.now() > at) throw std::logic_error("bang");
    if (at < kNever) context.send_self(0.001, token);
  }
};

TEST(Neighbours, PassOnWhatAnLpThrows) {
  const auto make = [](LpId id) { return Bomb{id == 3 ? 20.0 : kNever}; };
  for (unsigned threads : {2u, 4u}) EXPECT_THROW(test::run(options(threads, 100), 4, make, nobody), std::logic_error);
}

// The first thread has nothing to do, and still tells of the others' progress and hears that all should stop.
TEST(Neighbours, TellProgressAndStop) {
  Options how = options(2, 1e9);
  how.progress_interval = 0.001;
  Simulation simulation(how);
  simulation.add<Bomb>(2, [](LpId id) { return Bomb{id == 1 ? 1e10 : kNever}; });
  simulation.set_neighbours(nobody);
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
  EXPECT_LT(result.reached, how.end);
}

TEST(Neighbours, SleepUntilOneClockHasReachedTheirs) {
  Parker parker;
  parker.prepare_to_park(3, 5.0);
  parker.raised(2, 9.0);
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
}

}  // namespace
}  // namespace pdes

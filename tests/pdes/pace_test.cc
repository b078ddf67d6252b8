// Runs beside real time, and what comes from outside: never early, never in an LP's past, and the same again when replayed.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "in_process_ranks.h"
#include "simulations.h"

namespace pdes {
namespace {

using namespace std::chrono_literals;

struct Tick {};
struct Knock {
  std::uint64_t number;
};
struct Loud {};  // nobody hears it
using PaceContext = Context<Tick, Cancellable<Knock>, Loud>;

// Ticks once in a unit of time and tells the next one of what came from outside.
struct Listener {
  using Context = PaceContext;
  Time last = 0;
  std::uint64_t heard = 0;
  void start(Context& context) { context.send_self(1 + 0.01 * context.id(), Tick{}); }
  void on(Context& context, const Tick&) {
    see(context);
    context.send_self(1, Tick{});
  }
  void on(Context& context, const Knock& knock) {
    see(context);
    heard += knock.number;
    if (knock.number % 3 != 0) context.send((context.id() + 1) % context.lp_count(), 0.5, Knock{knock.number - 1});
  }
  void report(Report& report) const { report.count("heard", heard); }

 private:
  void see(const Context& context) {
    if (context.now() < last) throw std::logic_error("an event from the past");
    last = context.now();
  }
};

constexpr LpId kListeners = 6;

Options paced(double pace, unsigned threads = 1) { return {.end = 40, .lookahead = 0.5, .threads = threads, .pace = pace}; }

Result run(const Options& how, std::vector<Injected> replayed = {}, Ranks* ranks = nullptr) {
  Simulation simulation(how);
  simulation.add<Listener>(kListeners, [](LpId) { return Listener(); });
  simulation.replay(std::move(replayed));
  return simulation.run(ranks);
}

class Paced : public testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Threads, Paced, testing::Values(1, 2, 3));

TEST_P(Paced, ItTakesAtLeastItsTimeAndComesToTheSame) {
  const Result result = run(paced(400, GetParam()));
  EXPECT_GE(result.wall_s, 0.0999);
  EXPECT_EQ(result.digest, run({.end = 40, .lookahead = 0.5}).digest);
  EXPECT_TRUE(result.injected.empty());
}

TEST_P(Paced, WhatComesFromOutsideComesAgainInAReplay) {
  Simulation simulation(paced(400, GetParam()));
  simulation.add<Listener>(kListeners, [](LpId) { return Listener(); });
  std::uint64_t given = 0;
  for (; given < 20; ++given) simulation.inject<PaceContext>(static_cast<LpId>(given % kListeners), Knock{given});
  std::jthread outside([&] {
    while (simulation.inject<PaceContext>(static_cast<LpId>(given % kListeners), Knock{given},
                                          static_cast<Priority>(given % 2))) {
      ++given;
      if (given % 5 == 0) std::this_thread::sleep_for(300us);
    }
  });
  const Result result = simulation.run();
  outside.join();
  ASSERT_GE(result.injected.size(), 20u);
  EXPECT_LE(result.injected.size(), given);
  for (const Injected& event : result.injected) {
    EXPECT_GE(event.time, 0);
    EXPECT_LT(event.time, 40);
  }
  for (const unsigned threads : {1u, 2u, 4u}) {
    const Result again = run({.end = 40, .lookahead = 0.5, .threads = threads}, result.injected);
    EXPECT_EQ(again.digest, result.digest);
    EXPECT_EQ(again.total.events, result.total.events);
    EXPECT_EQ(again.injected.size(), result.injected.size());
  }
  test::on_ranks(2, [&](std::size_t rank, Ranks& mine) {
    const Result again = run({.end = 40, .lookahead = 0.5, .threads = 2}, result.injected, &mine);
    if (rank == 0) { EXPECT_EQ(again.digest, result.digest); }
  });
}

struct Talker {
  using Context = PaceContext;
  Simulation* own;
  Time last = 0;
  std::uint64_t heard = 0;
  void start(Context& context) { context.send_self(1, Tick{}); }
  void on(Context& context, const Tick&) {
    see(context);
    if (own != nullptr) own->inject<PaceContext>((context.id() + 1) % context.lp_count(), Knock{3});
    context.send_self(1, Tick{});
  }
  void on(Context& context, const Knock& knock) {
    see(context);
    ++heard;
    if (knock.number > 0) context.send((context.id() + 1) % context.lp_count(), 0.5, Knock{knock.number - 1});
  }
  void report(Report& report) const { report.count("heard", heard); }
  void serialize(Archive& archive) { archive(last, heard); }
  void see(const Context& context) {
    if (context.now() < last) throw std::logic_error("an event from the past");
    last = context.now();
  }
};

// Several give at once, the model itself among them, while the run is saved again and again; then it is stopped.
TEST_P(Paced, GiversSaversAndAStopAtOnce) {
  const auto file = std::filesystem::path(testing::TempDir()) / ("pace" + std::to_string(GetParam()));
  Options how{.end = 1e5, .lookahead = 0.5, .threads = GetParam(), .pace = 500};
  how.checkpoint = file.string();
  Result stopped;
  {
    Simulation simulation(how);
    simulation.add<Talker>(5, [&](LpId) { return Talker{&simulation}; });
    std::atomic<std::uint64_t> given = 0;
    std::vector<std::jthread> others;
    for (LpId to = 0; to < 3; ++to)
      others.emplace_back([&, to] {
        while (simulation.inject<PaceContext>(to, Knock{2})) {
          if (++given % 64 == 0) std::this_thread::sleep_for(1ms);
        }
      });
    others.emplace_back([&] {
      for (int i = 0; i < 10; ++i) {
        std::this_thread::sleep_for(5ms);
        simulation.save();
      }
      while (given < 100) std::this_thread::yield();
      simulation.stop();
    });
    stopped = simulation.run();
  }
  EXPECT_TRUE(stopped.stopped);
  EXPECT_GT(stopped.checkpoints, 0u);
  how.pace = 0;
  how.checkpoint.clear();
  how.resume = file.string();
  how.end = 1e5;
  how.threads = 2;
  Simulation rest(how);
  rest.add<Talker>(5, [](LpId) { return Talker{nullptr}; });
  const Result end = rest.run();
  EXPECT_EQ(end.events_before, stopped.total.events);
  EXPECT_EQ(end.reached, 1e5);
  std::filesystem::remove(file);
}

TEST(Pace, HashedTiesAreReplayedToo) {
  Options how = paced(1000, 2);
  how.ties = Ties::hashed;
  Simulation simulation(how);
  simulation.add<Listener>(kListeners, [](LpId) { return Listener(); });
  for (LpId i = 0; i < 100; ++i) EXPECT_TRUE(simulation.inject<PaceContext>(i % kListeners, Knock{i}));
  const Result result = simulation.run();
  EXPECT_EQ(result.injected.size(), 100u);
  how.pace = 0;
  EXPECT_EQ(run(how, result.injected).digest, result.digest);
}

TEST_P(Paced, AStopEndsAWait) {
  struct Sleeper {
    using Context = PaceContext;
    void start(Context& context) { context.send_self(1e6, Tick{}); }
    void on(Context&, const Tick&) {}
  };
  Simulation simulation({.end = 2e6, .lookahead = 1, .threads = GetParam(), .pace = 1});
  simulation.add<Sleeper>(3, [](LpId) { return Sleeper(); });
  std::jthread outside([&] {
    std::this_thread::sleep_for(50ms);
    simulation.stop();
  });
  const Result result = simulation.run();
  EXPECT_TRUE(result.stopped);
  EXPECT_LT(result.reached, 1e6);
  EXPECT_EQ(result.total.events, 0u);
}

// Else this would take a quarter of an hour.
TEST_P(Paced, WhatComesIsExecutedAtOnce) {
  struct Waiter {
    using Context = PaceContext;
    void start(Context& context) { context.send_self(1e6, Tick{}); }
    void on(Context&, const Tick&) {}
    void on(Context& context, const Knock&) { context.end_after(1); }
  };
  Simulation simulation({.end = 2e6, .lookahead = 1, .threads = GetParam(), .pace = 1000});
  simulation.add<Waiter>(3, [](LpId) { return Waiter(); });
  std::jthread outside([&] {
    std::this_thread::sleep_for(20ms);
    simulation.inject<PaceContext>(2, Knock{1});
  });
  const Result result = simulation.run();
  EXPECT_TRUE(result.ended_by_model);
  EXPECT_EQ(result.total.events, 1u);
  EXPECT_LT(result.reached, 1e6);
}

TEST(Pace, NobodyIsToldWhenTheRunIsOver) {
  Simulation simulation(paced(1e6));
  simulation.add<Listener>(kListeners, [](LpId) { return Listener(); });
  simulation.run();
  EXPECT_FALSE(simulation.inject<PaceContext>(0, Knock{1}));
}

TEST(Pace, WhatIsWrongIsSaid) {
  const auto given = [](const Options& how, auto give) {
    return test::error_of([&] {
      Simulation simulation(how);
      simulation.add<Listener>(kListeners, [](LpId) { return Listener(); });
      give(simulation);
      simulation.run();
    });
  };
  const auto knock = [](LpId to, Priority priority) {
    return [=](Simulation& simulation) { simulation.inject<PaceContext>(to, Knock{1}, priority); };
  };
  const auto nothing = [](Simulation&) {};
  EXPECT_EQ(given(paced(0), knock(0, 0)), "a run takes events from outside only if it keeps a pace");
  EXPECT_EQ(given(paced(1e6), knock(6, 0)), "an event from outside is for LP 6, which does not exist");
  EXPECT_EQ(given(paced(1e6), knock(0, 64)), "an event from outside has a priority above 63");
  EXPECT_EQ(given(paced(-1), nothing), "the pace must be 0 or more");
  for (const unsigned threads : {1u, 2u}) {
    Options neighbours = paced(1e6, threads);
    neighbours.sync = Sync::neighbours;
    EXPECT_EQ(given(neighbours, nothing), "a pace is kept by windows, on threads of one rank");
  }
  const auto replay = [](const Injected& event) { return [=](Simulation& simulation) { simulation.replay({event}); }; };
  for (const Injected& event :
       {Injected{1, 6, 0, 0, {}}, Injected{1, 0, 3, 0, {}}, Injected{1, 0, 0, 0, std::vector<std::byte>(4)},
        Injected{-1, 0, 0, 0, std::vector<std::byte>(1)}, Injected{kNever, 0, 0, 0, std::vector<std::byte>(1)}})
    EXPECT_EQ(given(paced(0), replay(event)), "what is replayed came from another model");
  EXPECT_NE(
      given(paced(1e6), [](Simulation& simulation) { simulation.inject<PaceContext>(2, Loud{}); }).find("from outside"),
      std::string::npos);
}

}  // namespace
}  // namespace pdes

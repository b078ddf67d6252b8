// A run that an LP ends: at the time that it says, on any threads and ranks, with the same digest.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "in_process_ranks.h"
#include "simulations.h"

namespace pdes {
namespace {

using test::error_of;
using test::expect_same;

constexpr Time kEnd = 1000, kLookahead = 0.25;
constexpr LpId kLps = 24;

struct Visit {};
using TestContext = Context<Visit>;

// Visitors that walk about, busily and never twice at a time; the LP that has had `enough` ends the run.
struct House {
  using Context = TestContext;
  std::uint64_t enough;
  Time notice;  // from then until the end
  Time first;   // nobody comes earlier
  std::uint64_t visits = 0;
  Time last = 0;

  void start(Context& context) {
    if (enough == 0) context.end_after(notice);
    for (int i = 0; i < 3; ++i) context.send_self(first + context.random().exponential(1), Visit{});
  }
  void on(Context& context, const Visit&) {
    last = context.now();
    if (++visits == enough) context.end_after(notice);
    const auto to = static_cast<LpId>(context.random().integer(context.lp_count()));
    const Time stay = context.random().exponential(1);
    if (to == context.id()) context.send_self(stay, Visit{});
    else context.send(to, kLookahead + stay, Visit{});
  }
  void report(Report& report) const {
    report.count("visits", static_cast<std::int64_t>(visits));
    report.tally("last", [&] {
      Tally tally;
      tally.add(last);
      return tally;
    }());
  }
};

struct Town {
  std::uint64_t enough = 200;
  Time notice = kLookahead, first = 0;
  Options how = {};

  Simulation* build(Simulation& simulation) const {
    simulation.add<House>(kLps, [this](LpId id) { return House{id % 5 == 3 ? enough : ~0ull, notice, first}; });
    return &simulation;
  }
  Options options() const {
    Options options = how;
    options.end = kEnd;
    options.lookahead = kLookahead;
    return options;
  }
  Result run() const {
    Simulation simulation(options());
    return build(simulation)->run();
  }
};

const Options kWays[] = {
    {.threads = 2},
    {.threads = 5, .queue = Queue::heap},
    {.threads = 3, .partitioning = Partitioning::random},
    {.threads = 2, .sync = Sync::neighbours},
    {.threads = 4, .queue = Queue::heap, .sync = Sync::neighbours, .partitioning = Partitioning::round_robin},
};

TEST(EndAfter, IsWhereTheLpSaysOnAnyThreads) {
  for (const Time notice : {kLookahead, 3.0, 100.0}) {
    const Town town{.notice = notice};
    const Result alone = town.run();
    SCOPED_TRACE(alone.reached);
    ASSERT_GT(alone.reached, 10);
    ASSERT_LT(alone.reached, kEnd / 2);
    EXPECT_TRUE(alone.ended_by_model);
    EXPECT_FALSE(alone.stopped);
    EXPECT_LT(alone.statistics.at("last").most, alone.reached);
    EXPECT_GT(alone.statistics.at("last").most, alone.reached - 1);
    for (const Options& how : kWays) {
      SCOPED_TRACE(how.threads);
      Town other = town;
      other.how = how;
      const Result result = other.run();
      expect_same(result, alone);
      EXPECT_EQ(result.reached, alone.reached);
      EXPECT_TRUE(result.ended_by_model);
    }
  }
}

TEST(EndAfter, OnManyRanksToo) {
  const Town town;
  const Result alone = town.run();
  for (auto [ranks, threads] : {std::pair{2u, 1u}, {3u, 2u}, {2u, 20u}}) {
    std::vector<Result> results(ranks);
    test::on_ranks(ranks, [&](std::size_t rank, Ranks& mine) {
      Town here = town;
      here.how.threads = threads;
      Simulation simulation(here.options());
      results[rank] = here.build(simulation)->run(&mine);
    });
    expect_same(results[0], alone);
    for (const Result& result : results) {
      EXPECT_EQ(result.reached, alone.reached);
      EXPECT_TRUE(result.ended_by_model);
    }
  }
}

TEST(EndAfter, BeforeTheRunHasBegun) {
  const Town town{.enough = 0, .notice = 2};
  const Result alone = town.run();
  EXPECT_EQ(alone.reached, 2);
  EXPECT_GT(alone.total.events, 50u);
  const Town late{.enough = 0, .notice = 2, .first = 5};
  EXPECT_EQ(late.run().total.events, 0u);
  for (const Options& how : kWays) {
    Town other = town, later = late;
    other.how = later.how = how;
    expect_same(other.run(), alone);
    EXPECT_EQ(later.run().total.events, 0u);
    EXPECT_EQ(later.run().reached, 2);
  }
}

// The earliest of several counts, and the end of the options if that is earlier still.
TEST(EndAfter, BeyondTheEndOrAfterAnotherIsNoNews) {
  const Result late = Town{.notice = 2 * kEnd}.run(), none = Town{.enough = ~0ull}.run();
  EXPECT_EQ(late.reached, kEnd);
  EXPECT_FALSE(late.ended_by_model);
  expect_same(late, none);
}

// The request is older than the checkpoint, and must not be lost.
TEST(EndAfter, IsInACheckpoint) {
  Town town{.enough = 100, .notice = 50};
  const Result whole = town.run();
  const std::string path = testing::TempDir() + "end_after_test." + std::to_string(getpid());
  town.how.checkpoint = path;
  town.how.max_simultaneous = 50;  // so it looks for requests as often as that
  town.how.progress_interval = 0;
  Simulation simulation(town.options());
  const Time asked = whole.reached - 50;
  simulation.on_progress([&](const Progress& progress) {
    if (progress.now > asked + 20) simulation.stop();
  });
  const Result part = town.build(simulation)->run();
  ASSERT_TRUE(part.stopped);
  EXPECT_FALSE(part.ended_by_model);
  ASSERT_GT(part.reached, asked + 20);
  ASSERT_LT(part.reached, whole.reached);
  for (const unsigned threads : {1u, 3u}) {
    Town rest = town;
    rest.how = {.threads = threads, .resume = path};
    const Result result = rest.run();
    expect_same(result, whole);
    EXPECT_EQ(result.reached, whole.reached);
  }
  std::filesystem::remove(path);
}

TEST(EndAfter, SoonerThanOthersCanLearnOfItIsRefused) {
  for (const unsigned threads : {1u, 2u})
    for (const auto& [notice, text] : {std::pair{0.125, "0.125"}, {-1.0, "-1"}, {std::nan(""), "nan"}})
      EXPECT_NE(error_of([&] {
                  (Town{.notice = notice, .how = {.threads = threads}}.run());
                }).find(std::string("ends the run after ") + text + ": that is below the lookahead 0.25"),
                std::string::npos);
}

// A thread that hears nothing of the others may be anywhere.
TEST(EndAfter, IsRefusedWhereNotAllThreadsAreNeighbours) {
  Town town;
  town.how = {.threads = 4, .sync = Sync::neighbours};
  const auto refusal = [&](const Simulation::Neighbours& neighbours) {
    Simulation simulation(town.options());
    town.build(simulation)->set_neighbours(neighbours);
    return error_of([&] { simulation.run(); });
  };
  struct Near {
    using Context = TestContext;
    void start(Context& context) { context.send_self(1, Visit{}); }
    void on(Context& context, const Visit&) { context.end_after(kLookahead); }
  };
  Simulation simulation(town.options());
  simulation.add<Near>(8, [](LpId) { return Near{}; });
  simulation.set_neighbours([](LpId id, const auto& to) { to((id + 1) % 8); });
  EXPECT_NE(error_of([&] { simulation.run(); }).find("ends the run, but its thread may not send to every other one"),
            std::string::npos);
  EXPECT_EQ(refusal([](LpId, const auto& to) {
              for (LpId id = 0; id < kLps; ++id) to(id);
            }),
            "no error");
}

}  // namespace
}  // namespace pdes

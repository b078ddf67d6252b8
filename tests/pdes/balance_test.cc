// LPs move between threads as the load does, and nobody can tell from the results.
#include "engine/balance.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

#include "engine/team.h"
#include "in_process_ranks.h"
#include "simulations.h"
#include "town.h"

namespace pdes {
namespace {

using namespace test;

class Balanced : public testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Threads, Balanced, testing::Values(2, 3, 4));

TEST_P(Balanced, ChangesNoResult) {
  const Result whole = run_town(basic(1));
  ASSERT_GT(whole.total.cancelled, 1000u);
  EXPECT_EQ(whole.total.parted, 0u);
  const Options ways[] = {{},
                          {.queue = Queue::heap},
                          {.allocator = Allocator::free_list},
                          {.blocks = Blocks::lines, .partitioning = Partitioning::round_robin},
                          {.partitioning = Partitioning::random}};
  for (const Options& way : ways) {
    Options how = basic(GetParam());
    how.queue = way.queue;
    how.allocator = way.allocator;
    how.blocks = way.blocks;
    how.partitioning = way.partitioning;
    const Result result = run_town(how);
    expect_same(result, whole);
    EXPECT_EQ(result.total.cancelled, whole.total.cancelled);
    if (way.partitioning == Partitioning::blocks) { EXPECT_GT(result.total.parted, 100u); }
  }
  const Result off = run_town(basic(GetParam(), Balance::off));
  expect_same(off, whole);
  EXPECT_EQ(off.total.parted, 0u);
}

// What is executed by each thread depends on numbers of events alone, not on time.
TEST_P(Balanced, IsTheSameEachTime) {
  const Result once = run_town(basic(GetParam())), again = run_town(basic(GetParam()));
  EXPECT_EQ(once.total.parted, again.total.parted);
  EXPECT_EQ(once.total.crossed, again.total.crossed);
  for (std::size_t i = 0; i < once.threads.size(); ++i) EXPECT_EQ(once.threads[i].events, again.threads[i].events);
}

// One place that stays hot, at the end of the row: blocks give one thread most of the work.
TEST_P(Balanced, SharesTheWork) {
  const Town town{.lps = 1000, .hot = 120, .turn = kNever};
  EXPECT_GT(skew(run_town(basic(GetParam(), Balance::off), town)), 1.4);
  EXPECT_LT(skew(run_town(basic(GetParam()), town)), 1.2);
}

TEST_P(Balanced, LeavesEvenLoadAlone) {
  const Town town{.hot = 0};
  EXPECT_EQ(run_town(basic(GetParam()), town).total.parted, 0u);
}

TEST_P(Balanced, OneLpMayHaveMostOfTheWork) {
  const Town town{.lps = 12, .hot = 1, .turn = kNever};
  expect_same(run_town(basic(GetParam()), town), run_town(basic(1), town));
}

// One thread stays busier, wherever LPs are.
TEST(Balancer, GivesUpWhereNothingHelps) {
  Requests requests;
  World world;
  world.types.push_back({8, "Hop"});
  world.classes.resize(1);
  Team team(basic(2), std::move(world), nullptr, requests);
  Balancer first(team, 0), second(team, 1);
  unsigned moves = 0;
  for (int window = 0; window < 2000; ++window) {
    team.partitions[0]->executed_by_type[0] += 3000;
    team.partitions[1]->executed_by_type[0] += 1000;
    first.tell();
    second.tell();
    const bool due = first.is_due();
    ASSERT_EQ(second.is_due(), due);
    moves += due;
  }
  EXPECT_GT(moves, 5u);
  EXPECT_LT(moves, 25u);
}

TEST_P(Balanced, FewerLpsThanThreads) {
  const Town few{.lps = 3, .hot = 1, .turn = 20};
  expect_same(run_town(basic(GetParam()), few), run_town(basic(1), few));
}

// Where all threads have met, whatever has moved: so the run goes on on any number of threads, and LPs move again.
TEST_P(Balanced, GoesOnFromACheckpoint) {
  const std::string path = testing::TempDir() + "balance_test." + std::to_string(getpid());
  const Result whole = run_town(basic(1));
  for (const std::int64_t after : {40000, 90000}) {
    Options how = basic(GetParam());
    how.checkpoint = path;
    const Result part = run_town(how, {}, after);
    ASSERT_TRUE(part.stopped);
    EXPECT_GT(part.total.parted, 0u);
    ASSERT_LT(part.total.events, whole.total.events);
    for (const unsigned threads : {1u, 2u, 3u}) {
      how = basic(threads);
      how.resume = path;
      const Result rest = run_town(how);
      expect_same(rest, whole);
      EXPECT_EQ(rest.total.parted > 0, threads > 1);
    }
  }
  std::filesystem::remove(path);
}

TEST_P(Balanced, EndsWhereAnLpSays) {
  const Town town{.ends = 25};
  const Result result = run_town(basic(GetParam()), town), whole = run_town(basic(1), town);
  EXPECT_TRUE(result.ended_by_model);
  EXPECT_EQ(result.reached, whole.reached);
  EXPECT_GT(result.total.parted, 0u);
  expect_same(result, whole);
}

TEST_P(Balanced, ALpThatFailsIsNamedAndAllAreDestroyed) {
  const Town town{.fails = 25};
  const std::string error = error_of([&] { run_town(basic(GetParam()), town); });
  EXPECT_EQ(error, "it had to be");
  EXPECT_EQ(g_alive, 0);
}

// By windows alone; the neighbours that a thread declared are those of its LPs.
TEST_P(Balanced, NotByNeighboursClocks) {
  Options how = basic(GetParam());
  how.sync = Sync::neighbours;
  const Result result = run_town(how);
  EXPECT_EQ(result.total.parted, 0u);
  EXPECT_EQ(result.digest, run_town(basic(1)).digest);
}

TEST(BalancedRanks, MoveLpsAmongTheirOwnThreads) {
  const Result whole = run_town(basic(1));
  for (auto [ranks, threads] : {std::pair{2u, 2u}, {2u, 3u}, {3u, 2u}}) {
    std::vector<Result> results(ranks);
    on_ranks(ranks, [&, threads = threads](std::size_t rank, Ranks& mine) {
      results[rank] = run_town(basic(threads), {}, 0, &mine);
    });
    expect_same(results[0], whole);
    EXPECT_GT(results[0].total.parted, 0u);
  }
}

// What comes from outside finds the LP wherever it is, and so does a replay.
TEST_P(Balanced, BesideRealTime) {
  const Town town;
  Options how = basic(GetParam());
  how.pace = 1000;
  Simulation simulation(how);
  simulation.add<Walker>(town.lps, [&town](LpId id) { return Walker(town, id); });
  std::atomic<bool> gives{false};
  std::jthread outside([&] {
    for (LpId to = 0; simulation.inject<Walker::Context>(to, Hop{}); to = (to + 7) % town.lps) {
      gives = true;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  });
  while (!gives) std::this_thread::yield();  // or a busy machine might let it come when all is over
  const Result result = simulation.run();
  outside.join();
  EXPECT_GT(result.total.parted, 0u);
  EXPECT_FALSE(result.injected.empty());
  Simulation again(basic(1));
  again.add<Walker>(town.lps, [&town](LpId id) { return Walker(town, id); });
  again.replay(result.injected);
  EXPECT_EQ(again.run().digest, result.digest);
}

}  // namespace
}  // namespace pdes

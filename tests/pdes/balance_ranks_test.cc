// LPs move to other ranks as the load does, and nobody can tell from the results.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "in_process_ranks.h"
#include "simulations.h"
#include "town.h"

namespace pdes {
namespace {

using namespace test;

std::vector<Result> run_on(unsigned ranks, Options how, const Town& town = {}) {
  if (how.balance == Balance::threads) how.balance = Balance::ranks;
  std::vector<Result> results(ranks);
  on_ranks(ranks, [&](std::size_t rank, Ranks& mine) { results[rank] = run_town(how, town, 0, &mine); });
  return results;
}

// Why the run ends on each rank; `place`, if not null, is where the rank is that has a place.
std::vector<std::string> errors_on(unsigned ranks, const Options& how, const Town& town, std::string* place = nullptr) {
  std::vector<std::string> errors(ranks);
  on_ranks(ranks, [&](std::size_t rank, Ranks& mine) {
    Simulation simulation(how);
    simulation.add<Walker>(town.lps, [&town](LpId id) { return Walker(town, id); });
    errors[rank] = error_of([&] { simulation.run(&mine); });
    if (place != nullptr && !simulation.partial().failed_at.empty()) *place = simulation.partial().failed_at;
  });
  return errors;
}

// The busiest rank's events beside the mean.
double skew_of(const std::vector<Result>& ranks) {
  Result sums;
  for (const Result& rank : ranks) {
    Activity& sum = sums.threads.emplace_back();
    for (const Activity& thread : rank.threads) sum.events += thread.events;
  }
  return skew(sums);
}

class Shape : public testing::TestWithParam<std::pair<unsigned, unsigned>> {
 protected:
  const unsigned ranks_ = GetParam().first, threads_ = GetParam().second;
};
INSTANTIATE_TEST_SUITE_P(RanksAndThreads, Shape,
                         testing::Values(std::pair{2u, 1u}, std::pair{2u, 2u}, std::pair{3u, 2u}, std::pair{4u, 1u}));

TEST_P(Shape, ChangesNoResult) {
  const Result whole = run_town(basic(1));
  const Options ways[] = {{},
                          {.allocator = Allocator::free_list, .queue = Queue::heap},
                          {.blocks = Blocks::lines, .partitioning = Partitioning::round_robin}};
  for (const Options& way : ways) {
    Options how = basic(threads_);
    how.queue = way.queue;
    how.allocator = way.allocator;
    how.blocks = way.blocks;
    how.partitioning = way.partitioning;
    const Result result = run_on(ranks_, how)[0];
    expect_same(result, whole);
    EXPECT_EQ(result.total.cancelled, whole.total.cancelled);
    if (way.partitioning != Partitioning::blocks) continue;  // which is even from the start
    EXPECT_GT(result.total.emigrated, 100u);
    EXPECT_GE(result.total.parted, result.total.emigrated);
    if (threads_ > 1) { EXPECT_GT(result.total.parted, result.total.emigrated); }
  }
  EXPECT_EQ(g_alive, 0);
}

TEST_P(Shape, IsTheSameEachTime) {
  const auto once = run_on(ranks_, basic(threads_)), again = run_on(ranks_, basic(threads_));
  for (std::size_t rank = 0; rank < ranks_; ++rank)
    for (std::size_t i = 0; i < threads_; ++i) EXPECT_EQ(once[rank].threads[i].events, again[rank].threads[i].events);
  EXPECT_EQ(once[0].total.emigrated, again[0].total.emigrated);
}

TEST_P(Shape, SharesTheWork) {
  const Town town{.lps = 1000, .hot = 120, .turn = kNever};
  EXPECT_GT(skew_of(run_on(ranks_, basic(threads_, Balance::off), town)), 1.4);
  EXPECT_LT(skew_of(run_on(ranks_, basic(threads_), town)), 1.2);
}

TEST_P(Shape, LeavesEvenLoadAlone) {
  const Town town{.hot = 0};
  EXPECT_EQ(run_on(ranks_, basic(threads_), town)[0].total.parted, 0u);
}

TEST_P(Shape, FewerLpsThanRanks) {
  const Town few{.lps = 3, .hot = 1, .turn = 20};
  expect_same(run_on(ranks_, basic(threads_), few)[0], run_town(basic(1), few));
}

TEST_P(Shape, AnLpThatFailsIsNamedAndAllAreDestroyed) {
  Options how = basic(threads_);
  how.balance = Balance::ranks;
  const auto errors = errors_on(ranks_, how, {.fails = 25});
  EXPECT_GT(std::count(errors.begin(), errors.end(), "it had to be"), 0);
  for (const std::string& error : errors)
    if (error != "it had to be") { EXPECT_EQ(error, "the run failed on another rank"); }
  EXPECT_EQ(g_alive, 0);
}

TEST(BalancedRanks, GoOnFromACheckpoint) {
  const std::string path = testing::TempDir() + "balance_ranks_test." + std::to_string(getpid());
  const Result whole = run_town(basic(1));
  Options how = basic(2);
  how.checkpoint = path;
  how.checkpoint_every = 1e-9;  // in each window
  const auto saved = run_on(2, how);
  EXPECT_GT(saved[0].total.emigrated, 100u);
  EXPECT_GT(saved[0].checkpoints, 10u);
  for (const unsigned ranks : {1u, 3u}) {
    how = basic(2);
    how.resume = path;
    expect_same(ranks == 1 ? run_town(how) : run_on(ranks, how)[0], whole);
  }
  std::filesystem::remove(path);
}

// One after the other: whoever would have to leave first.
TEST(BalancedRanks, AnLpThatCannotBeSavedEndsTheRun) {
  Options how = basic(2);
  how.balance = Balance::ranks;
  unsigned failed = 0;
  for (LpId lp = 5; lp < 800; lp += 99) {
    std::string place;
    const auto errors = errors_on(2, how, {.cannot_be_saved = lp}, &place);
    const bool fails = std::count(errors.begin(), errors.end(), "it has no suitcase") == 1;
    EXPECT_EQ(place, fails ? "LP " + std::to_string(lp) + " (Walker), on its way to another rank" : "");
    for (const std::string& error : errors) {
      EXPECT_TRUE(error == "no error" ? !fails : fails) << error;
      if (fails && error != "it has no suitcase") { EXPECT_EQ(error, "the run failed on another rank"); }
    }
    failed += fails;
    ASSERT_EQ(g_alive, 0);
  }
  EXPECT_GT(failed, 1u);
}

// Writes to the next one alone; the busy ones, an eighth of all, go round.
struct Neighbour {
  using Context = pdes::Context<Hop, Alarm>;
  void start(Context& context) { context.send_self(context.random().uniform(), Alarm{}); }
  void on(Context& context, const Alarm&) {
    const LpId lps = context.lp_count(), first = static_cast<LpId>(context.now() * 4) % lps;
    const bool busy = (context.id() + lps - first) % lps < lps / 8;
    context.send_self(context.random().exponential(busy ? 0.1 : 1), Alarm{});
    context.send((context.id() + 1) % lps, context.lookahead(), Hop{});
  }
  void on(Context&, const Hop&) {}
};

// So each thread has a stretch of the ring, or two with the rest, and few events leave it.
TEST_P(Shape, LeavesNeighboursTogether) {
  std::vector<Result> results(ranks_);
  on_ranks(ranks_, [&](std::size_t rank, Ranks& mine) {
    Simulation simulation(
        {.end = 400, .lookahead = 0.2, .threads = threads_, .balance = Balance::ranks, .balance_by = BalanceBy::events});
    simulation.add<Neighbour>(800, [](LpId) { return Neighbour(); });
    results[rank] = simulation.run(&mine);
  });
  EXPECT_GT(results[0].total.emigrated, 1000u);
  EXPECT_LT(results[0].total.crossed * 100, results[0].total.sent * 2) << results[0].total.sent;
}

struct Rooted {
  using Context = pdes::Context<Hop>;
  static constexpr bool kCheckpoints = false;
  void start(Context& context) { context.send_self(1, Hop{}); }
  void on(Context&, const Hop&) {}
};

TEST(BalancedRanks, OnlyLpsThatCanBeSaved) {
  const auto rooted = [](Ranks* ranks, Balance balance) {
    return error_of([&] {
      Simulation simulation({.end = 10, .lookahead = 1, .balance = balance});
      simulation.add<Rooted>(10, [](LpId) { return Rooted(); });
      simulation.run(ranks);
    });
  };
  EXPECT_EQ(rooted(nullptr, Balance::ranks), "no error");
  on_ranks(2, [&](std::size_t, Ranks& ranks) {
    EXPECT_EQ(rooted(&ranks, Balance::threads), "no error");
    EXPECT_EQ(rooted(&ranks, Balance::ranks).find("LPs of class Rooted cannot move to other ranks: "), 0u);
  });
}

}  // namespace
}  // namespace pdes

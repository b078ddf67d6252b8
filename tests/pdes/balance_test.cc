// LPs move between threads as the load does, and nobody can tell from the results.
#include "engine/balance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <thread>
#include <vector>

#include "engine/team.h"
#include "in_process_ranks.h"
#include "simulations.h"

namespace pdes {
namespace {

using test::expect_same;

struct Hop {};
struct Chatter {
  std::uint64_t words[9];
};
struct Alarm {};

struct Town {
  LpId lps = 800, hot = 100;  // these get ten times as many hops as the others
  double turn = 80;           // in which they move round
  double ends = kNever;       // LPs end the run a little later
  double fails = kNever;
};

std::atomic<std::int64_t> g_alive, g_until_stop;
std::atomic<Simulation*> g_running;

// Owns memory, has timers, talks to itself.
class Walker {
 public:
  using Context = pdes::Context<Hop, Chatter, Cancellable<Alarm>>;
  Walker(const Town& town, LpId id) : town_(town), name_("walker " + std::to_string(id)) { ++g_alive; }
  ~Walker() { --g_alive; }
  Walker(const Walker&) = delete;
  Walker& operator=(const Walker&) = delete;

  void start(Context& context) {
    for (int i = 0; i < 4; ++i) context.send_self(context.random().exponential(1), Hop{});
  }
  void on(Context& context, const Hop&) {
    if (g_until_stop.fetch_sub(1, std::memory_order_relaxed) == 1) g_running.load()->stop();
    auto random = context.random();
    context.set(alarms_[random.integer(2)], random.exponential(0.5), Alarm{});
    if (random.chance(0.1)) context.send_self(0, Chatter{{seen_.size()}});
    context.send(next(context), context.lookahead() + random.exponential(1 - context.lookahead()), Hop{});
  }
  void on(Context& context, const Chatter& chatter) {
    if (seen_.size() > 8) seen_.clear();
    seen_.push_back(chatter.words[0] * 31 + context.random().integer(9));
  }
  void on(Context& context, const Alarm&) {
    ++alarms_seen_;
    if (context.now() > town_.ends) context.end_after(1);
    if (context.now() > town_.fails) throw Error("it had to be");
  }
  void report(Report& report) const {
    for (std::uint64_t number : seen_) report.count(name_.substr(0, 8), static_cast<std::int64_t>(number % 1000));
    report.count("alarms", alarms_seen_);
  }
  template <class A>
  void serialize(A& archive) {
    archive(seen_, alarms_, alarms_seen_);
  }

 private:
  LpId next(Context& context) const {
    auto random = context.random();
    const double turns = context.now() / town_.turn;
    const auto first = static_cast<LpId>((turns - std::floor(turns)) * town_.lps);
    const bool inside = random.chance(10.0 * town_.hot / (9.0 * town_.hot + town_.lps));
    const auto from_first = inside ? random.integer(town_.hot) : town_.hot + random.integer(town_.lps - town_.hot);
    return static_cast<LpId>((first + from_first) % town_.lps);
  }

  const Town& town_;
  std::string name_;
  std::vector<std::uint64_t> seen_;
  std::array<Timer, 2> alarms_;
  std::int64_t alarms_seen_ = 0;
};

Options basic(unsigned threads, Balance balance = Balance::events) {
  return {.end = 40, .lookahead = 0.2, .threads = threads, .balance = balance, .model = "town"};
}

Result run(const Options& how, const Town& town = {}, std::int64_t stop_after = 0, Ranks* ranks = nullptr) {
  Simulation simulation(how);
  simulation.add<Walker>(town.lps, [&town](LpId id) { return Walker(town, id); });
  if (ranks == nullptr) {
    g_until_stop = stop_after;
    g_running = &simulation;
  }
  return simulation.run(ranks);
}

// The busiest thread's events beside the mean.
double skew(const Result& result) {
  std::uint64_t most = 0, all = 0;
  for (const Activity& thread : result.threads) {
    most = std::max(most, thread.events);
    all += thread.events;
  }
  return static_cast<double>(most * result.threads.size()) / static_cast<double>(all);
}

class Balanced : public testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Threads, Balanced, testing::Values(2, 3, 4));

TEST_P(Balanced, ChangesNoResult) {
  const Result whole = run(basic(1));
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
    const Result result = run(how);
    expect_same(result, whole);
    EXPECT_EQ(result.total.cancelled, whole.total.cancelled);
    if (way.partitioning == Partitioning::blocks) { EXPECT_GT(result.total.parted, 100u); }
  }
  const Result off = run(basic(GetParam(), Balance::off));
  expect_same(off, whole);
  EXPECT_EQ(off.total.parted, 0u);
}

// What is executed by each thread depends on numbers of events alone, not on time.
TEST_P(Balanced, IsTheSameEachTime) {
  const Result once = run(basic(GetParam())), again = run(basic(GetParam()));
  EXPECT_EQ(once.total.parted, again.total.parted);
  EXPECT_EQ(once.total.crossed, again.total.crossed);
  for (std::size_t i = 0; i < once.threads.size(); ++i) EXPECT_EQ(once.threads[i].events, again.threads[i].events);
}

// One place that stays hot, at the end of the row: blocks give one thread most of the work.
TEST_P(Balanced, SharesTheWork) {
  const Town town{.lps = 1000, .hot = 120, .turn = kNever};
  EXPECT_GT(skew(run(basic(GetParam(), Balance::off), town)), 1.4);
  EXPECT_LT(skew(run(basic(GetParam()), town)), 1.2);
}

TEST_P(Balanced, LeavesEvenLoadAlone) {
  const Town town{.hot = 0};
  EXPECT_EQ(run(basic(GetParam()), town).total.parted, 0u);
}

TEST_P(Balanced, OneLpMayHaveMostOfTheWork) {
  const Town town{.lps = 12, .hot = 1, .turn = kNever};
  expect_same(run(basic(GetParam()), town), run(basic(1), town));
}

// One thread stays busier, wherever LPs are.
TEST(Balancer, GivesUpWhereNothingHelps) {
  Requests requests;
  World world;
  world.types.push_back({8, "Hop"});
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
  expect_same(run(basic(GetParam()), few), run(basic(1), few));
}

// Where all threads have met, whatever has moved: so the run goes on on any number of threads, and LPs move again.
TEST_P(Balanced, GoesOnFromACheckpoint) {
  const std::string path = testing::TempDir() + "balance_test." + std::to_string(getpid());
  const Result whole = run(basic(1));
  for (const std::int64_t after : {40000, 90000}) {
    Options how = basic(GetParam());
    how.checkpoint = path;
    const Result part = run(how, {}, after);
    ASSERT_TRUE(part.stopped);
    EXPECT_GT(part.total.parted, 0u);
    ASSERT_LT(part.total.events, whole.total.events);
    for (const unsigned threads : {1u, 2u, 3u}) {
      how = basic(threads);
      how.resume = path;
      const Result rest = run(how);
      expect_same(rest, whole);
      EXPECT_EQ(rest.total.parted > 0, threads > 1);
    }
  }
  std::filesystem::remove(path);
}

TEST_P(Balanced, EndsWhereAnLpSays) {
  const Town town{.ends = 25};
  const Result result = run(basic(GetParam()), town), whole = run(basic(1), town);
  EXPECT_TRUE(result.ended_by_model);
  EXPECT_EQ(result.reached, whole.reached);
  EXPECT_GT(result.total.parted, 0u);
  expect_same(result, whole);
}

TEST_P(Balanced, ALpThatFailsIsNamedAndAllAreDestroyed) {
  const Town town{.fails = 25};
  const std::string error = test::error_of([&] { run(basic(GetParam()), town); });
  EXPECT_EQ(error, "it had to be");
  EXPECT_EQ(g_alive, 0);
}

// By windows alone; the neighbours that a thread declared are those of its LPs.
TEST_P(Balanced, NotByNeighboursClocks) {
  Options how = basic(GetParam());
  how.sync = Sync::neighbours;
  const Result result = run(how);
  EXPECT_EQ(result.total.parted, 0u);
  EXPECT_EQ(result.digest, run(basic(1)).digest);
}

TEST(BalancedRanks, MoveLpsAmongTheirOwnThreads) {
  const Result whole = run(basic(1));
  for (auto [ranks, threads] : {std::pair{2u, 2u}, {2u, 3u}, {3u, 2u}}) {
    std::vector<Result> results(ranks);
    test::on_ranks(
        ranks, [&, threads = threads](std::size_t rank, Ranks& mine) { results[rank] = run(basic(threads), {}, 0, &mine); });
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
  std::jthread outside([&] {
    for (LpId to = 0; simulation.inject<Walker::Context>(to, Hop{}); to = (to + 7) % town.lps)
      std::this_thread::sleep_for(std::chrono::microseconds(100));
  });
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

// LPs move as their events cost.  The clock that times these counts work, so nothing here depends on time.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <vector>

#include "engine/costs.h"
#include "in_process_ranks.h"
#include "pdes/pdes.h"

namespace pdes {
namespace {

using namespace test;

constexpr LpId kLps = 800;
constexpr Time kEnd = 200;
constexpr unsigned kPlaces = 16;
std::array<std::atomic<std::uint64_t>, kPlaces> g_done;  // by each thread, in the second half of the run
std::atomic<unsigned> g_places;
thread_local std::uint64_t t_ns = 0;
thread_local unsigned t_place = kPlaces;

std::uint64_t ns_of_this_thread() { return t_ns; }

void work(Time now, std::uint64_t ns) {
  if (t_place == kPlaces) t_place = g_places++ % kPlaces;
  t_ns += ns;
  if (now > kEnd / 2) g_done[t_place] += ns;
}

struct Short {};
struct Long {};

// By class; of a dear one the handlers take ten times as long.  Also by type, for `by_type` of the LPs.
template <bool kDear>
struct Worker {
  using Context = pdes::Context<Short, Long>;
  bool sends_long = false;
  void start(Context& context) { next(context); }
  void on(Context& context, const Short&) { executes(context, kDear ? 1000 : 100); }
  void on(Context& context, const Long&) { executes(context, 1000); }

 private:
  void executes(Context& context, std::uint64_t ns) {
    work(context.now(), ns);
    next(context);
  }
  void next(Context& context) {
    const LpId to = (context.id() + context.random().chance(0.1)) % context.lp_count();
    const double delay = context.lookahead() + context.random().exponential(1);
    if (sends_long) context.send(to, delay, Long{});
    else context.send(to, delay, Short{});
  }
};

struct Outcome {
  double skew;  // the busiest thread's work beside the mean
  Result result;
};

using Build = void (*)(Simulation&);

void dear_class(Simulation& simulation) {
  simulation.add<Worker<true>>(kLps / 8, [](LpId) { return Worker<true>(); });
  simulation.add<Worker<false>>(kLps - kLps / 8, [](LpId) { return Worker<false>(); });
}

void dear_type(Simulation& simulation) {
  simulation.add<Worker<false>>(kLps, [](LpId id) { return Worker<false>{.sends_long = id < kLps / 8}; });
}

Outcome run(Build build, unsigned ranks, unsigned threads, BalanceBy by, Balance balance = Balance::ranks) {
  for (auto& each : g_done) each = 0;
  g_places = 0;
  const Options how{.end = kEnd,
                    .lookahead = 0.5,
                    .threads = threads,
                    .balance = balance,
                    .balance_by = by,
                    .clock = ns_of_this_thread,
                    .gather = Gather::off};
  std::vector<Result> results(ranks);
  on_ranks(ranks, [&](std::size_t rank, Ranks& mine) {
    Simulation simulation(how);
    build(simulation);
    results[rank] = simulation.run(ranks > 1 ? &mine : nullptr);
  });
  std::uint64_t all = 0, most = 0;
  for (const auto& each : g_done) {
    all += each;
    most = std::max(most, each.load());
  }
  return {static_cast<double>(most * ranks * threads) / static_cast<double>(all), results[0]};
}

class ByCost : public testing::TestWithParam<std::pair<unsigned, unsigned>> {
 protected:
  void expect_shared(Build build) const {
    const auto [ranks, threads] = GetParam();
    const Outcome by_events = run(build, ranks, threads, BalanceBy::events),
                  by_time = run(build, ranks, threads, BalanceBy::time);
    EXPECT_EQ(by_events.result.total.parted, 0u);  // all LPs have equally many
    EXPECT_GT(by_events.skew, 1.45);
    EXPECT_LT(by_time.skew, 1.15);
    EXPECT_GT(by_time.result.total.parted, 0u);
    EXPECT_EQ(by_time.result.digest, by_events.result.digest);
    EXPECT_EQ(by_time.result.digest, run(build, 1, 1, BalanceBy::time).result.digest);
  }
};
INSTANTIATE_TEST_SUITE_P(RanksAndThreads, ByCost,
                         testing::Values(std::pair{1u, 2u}, std::pair{1u, 4u}, std::pair{2u, 1u}, std::pair{2u, 2u}));

TEST_P(ByCost, AClassOfLpsThatIsDear) { expect_shared(dear_class); }
TEST_P(ByCost, ATypeOfEventsThatIsDear) { expect_shared(dear_type); }

constexpr Timed kCheap{1000, 100'000}, kDear{1000, 1'000'000}, kFew{10, 1'000'000};

TEST(Weights, AreEqualUntilSomethingIsKnown) {
  Weights weights(2, 3);
  EXPECT_FALSE(weights.find(std::vector<Timed>(12)));
  EXPECT_EQ(weights.of(5), Weights::kUnit);
  EXPECT_EQ(weights.mean_ns(), 0);
  EXPECT_EQ(weights.spread(), 1);
}

TEST(Weights, OfTypesAndOfClasses) {
  Weights weights(2, 2);
  EXPECT_TRUE(weights.find(std::vector<Timed>{kCheap, kDear, kCheap, kDear}));
  EXPECT_FALSE(weights.by_class());
  EXPECT_NEAR(weights.of(1), 10 * weights.of(0), 10);
  EXPECT_EQ(weights.of(1), weights.of(3));
  EXPECT_NEAR(weights.mean_ns(), 550, 1e-9);
  EXPECT_NEAR(weights.spread(), 1.67, 0.05);  // (0.18^2 + 1.82^2) / 2
  EXPECT_FALSE(weights.find(std::vector<Timed>{kCheap, kDear, kCheap, kDear}));

  EXPECT_TRUE(weights.find(std::vector<Timed>{kDear, kCheap, kCheap, kCheap}));
  EXPECT_TRUE(weights.by_class());
  EXPECT_NEAR(weights.of(0), 10 * weights.of(2), 10);
}

// Each thread may know of other events; what happened seldom and what takes about as long makes no difference.
TEST(Weights, FromWhatAllThreadsKnow) {
  Weights weights(1, 2);
  EXPECT_TRUE(weights.find(std::vector<Timed>{kCheap, {}, {}, kDear}));
  EXPECT_NEAR(weights.of(1), 10 * weights.of(0), 10);
  EXPECT_TRUE(weights.find(std::vector<Timed>{kCheap, kFew}));
  EXPECT_EQ(weights.of(1), weights.of(0));
  EXPECT_FALSE(weights.find(std::vector<Timed>{kCheap, {1000, 120'000}}));
}

TEST(EventTimer, IsNotMisledByInterruptions) {
  EventTimer timer(2, ns_of_this_thread);
  timer.start();
  for (int i = 0; i < 10000; ++i) {
    t_ns += i == 5000 ? 10'000'000 : 100;
    timer.lap(1);
  }
  EXPECT_EQ(timer.timed()[1].events, 10000u);
  EXPECT_NEAR(static_cast<double>(timer.timed()[1].ns) / 10000, 100, 3);
  EXPECT_EQ(timer.timed()[0].events, 0u);
}

}  // namespace
}  // namespace pdes

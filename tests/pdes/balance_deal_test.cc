// Load that moves faster than stretches can follow: LPs are dealt out, and go home when that is dearer.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <vector>

#include "in_process_ranks.h"
#include "pdes/pdes.h"

namespace pdes {
namespace {

using namespace test;

constexpr unsigned kThreads = 4;
constexpr Time kLookahead = 0.5, kEnd = 160;

// Which thread runs this handler.
std::atomic<unsigned> g_threads;
thread_local unsigned t_thread = kThreads;
unsigned this_thread() {
  if (t_thread == kThreads) t_thread = g_threads++ % kThreads;
  return t_thread;
}

// Events of each thread in each stretch of time that is as long as a window.
using Counts = std::array<std::atomic<std::uint32_t>, kThreads>;
std::array<Counts, static_cast<std::size_t>(kEnd / kLookahead)> g_events;

struct Hop {};

// An eighth of all gets ten times as many events as the others, and moves round all.
struct Spot {
  using Context = pdes::Context<Hop>;
  double turn;
  void start(Context& context) { hop(context, context.id()); }
  void on(Context& context, const Hop&) {
    ++g_events[static_cast<std::size_t>(context.now() / kLookahead)][this_thread()];
    const double turns = context.now() / turn;
    const LpId all = context.lp_count(), hot = all / 8, first = static_cast<LpId>((turns - std::floor(turns)) * all);
    const bool inside = context.random().chance(10. / 17);
    const auto from_first = inside ? context.random().integer(hot) : hot + context.random().integer(all - hot);
    hop(context, static_cast<LpId>((first + from_first) % all));
  }
  static void hop(Context& context, LpId to) { context.send(to, kLookahead + context.random().exponential(0.5), Hop{}); }
};

std::vector<Result> run_spot(double turn, unsigned ranks, unsigned threads, Balance balance) {
  for (Counts& each : g_events)
    for (auto& count : each) count = 0;
  g_threads = 0;
  std::vector<Result> results(ranks);
  on_ranks(ranks, [&](std::size_t rank, Ranks& mine) {
    Simulation simulation({.end = kEnd,
                           .lookahead = kLookahead,
                           .threads = threads,
                           .balance = balance,
                           .balance_by = BalanceBy::events,
                           .gather = Gather::off});
    simulation.add<Spot>(4096, [turn](LpId) { return Spot{turn}; });
    results[rank] = simulation.run(ranks > 1 ? &mine : nullptr);
  });
  return results;
}

// Events of each window's busiest thread, beside the mean.
double busiest(unsigned threads) {
  double most = 0, all = 0;
  for (const Counts& each : g_events) {
    most += *std::max_element(each.begin(), each.end());
    for (const auto& count : each) all += count;
  }
  return most * threads / all;
}

class Moving : public testing::TestWithParam<double> {};
INSTANTIATE_TEST_SUITE_P(AllLpsIn, Moving, testing::Values(80, 160, 400, 1600));

TEST_P(Moving, IsWithin15PercentOfTheIdeal) {
  const std::uint64_t digest = run_spot(GetParam(), 1, 1, Balance::off)[0].digest;
  for (auto [ranks, threads] : {std::pair{1u, 2u}, {1u, 4u}, {2u, 1u}, {4u, 1u}, {2u, 2u}}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks of " + std::to_string(threads));
    run_spot(GetParam(), ranks, threads, Balance::off);
    EXPECT_GT(busiest(ranks * threads), 1.35);
    const Result result = run_spot(GetParam(), ranks, threads, Balance::ranks)[0];
    EXPECT_LT(busiest(ranks * threads), 1.15);
    EXPECT_EQ(result.digest, digest);
  }
}

// Writes to the next one alone; at first an eighth of all is ten times as busy, and moves round fast.
constexpr Time kTurning = 160, kQuiet = 600;

struct Sent {
  unsigned by;
};
struct Alarm {};

struct Shares {
  std::atomic<std::uint64_t> all, crossed;
  double crossing() const { return static_cast<double>(crossed) / static_cast<double>(all); }
} g_turning, g_quiet;

struct Settling {
  using Context = pdes::Context<Sent, Alarm>;
  void start(Context& context) { context.send_self(context.random().uniform(), Alarm{}); }
  void on(Context& context, const Alarm&) {
    const LpId all = context.lp_count(), first = static_cast<LpId>(context.now() / 20 * all) % all;
    const bool busy = context.now() < kTurning && (context.id() + all - first) % all < all / 8;
    context.send_self(context.random().exponential(busy ? 0.1 : 1), Alarm{});
    if (context.random().chance(0.25)) context.send((context.id() + 1) % all, kLookahead, Sent{this_thread()});
  }
  void on(Context& context, const Sent& sent) {
    if (context.now() > kTurning / 2 && context.now() < kTurning) count(g_turning, sent);
    if (context.now() > kQuiet) count(g_quiet, sent);
  }
  static void count(Shares& shares, const Sent& sent) {
    ++shares.all;
    shares.crossed += sent.by != this_thread();
  }
};

TEST(Dealt, GoHomeWhenThatIsDearer) {
  g_threads = 0;
  Simulation simulation(
      {.end = 800, .lookahead = kLookahead, .threads = kThreads, .balance_by = BalanceBy::events, .gather = Gather::off});
  simulation.add<Settling>(400, [](LpId) { return Settling(); });
  simulation.run();
  EXPECT_GT(g_turning.crossing(), 0.3);
  EXPECT_LT(g_quiet.crossing(), 0.05);
}

}  // namespace
}  // namespace pdes

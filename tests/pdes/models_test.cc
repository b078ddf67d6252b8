// The models against theory: what is conserved, and what queueing formulas say of a steady state.  Seeds are fixed, so
// nothing here fails by chance; docs/pdes-models.md derives the formulas.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>
#include <vector>

#include "models/airport.h"
#include "models/pcs.h"
#include "models/phold_variants.h"
#include "theory.h"

namespace {

using pdes::Options;
using pdes::Result;
using pdes::test::expect_near, pdes::test::number, pdes::test::options;

void add(pdes::Simulation& simulation, const phold::Parameters& parameters) { phold::add_varied(simulation, parameters); }

template <class Parameters = phold::Parameters>
Result run(const Parameters& parameters, const Options& chosen) {
  pdes::Simulation simulation(chosen);
  add(simulation, parameters);
  return simulation.run();
}

// ---- PHOLD

constexpr phold::Distribution kDistributions[] = {phold::Distribution::exponential, phold::Distribution::uniform,
                                                  phold::Distribution::bimodal, phold::Distribution::ties,
                                                  phold::Distribution::pareto};

// Each event sends one, and only what is due at or after the end is not executed.
TEST(Phold, PopulationIsConstant) {
  for (phold::Distribution distribution : kDistributions) {
    const phold::Parameters p{
        .lps = 100, .events_per_lp = 3, .payload = "8,512", .imbalance = 0.5, .distribution = distribution};
    const Result result = run(p, options(50, 0.1));
    EXPECT_EQ(result.total.dropped, 300u);
    EXPECT_GT(result.total.events, 300u);
  }
}

// Each event is a renewal process: after a long time t it was executed t / m + (v - m^2) / (2 m^2) times, with a
// variance of v t / m^3; m and v are mean and variance of the delay.
TEST(Phold, RateIsPopulationByMeanDelay) {
  const double lookahead = 0.25, mean = 1.25, end = 400;
  const double variance[] = {1, 1.0 / 3, 2 * (0.9 * 0.01 + 0.1 * 9.1 * 9.1) - 1};
  for (std::size_t i = 0; i < std::size(variance); ++i) {
    const phold::Parameters p{.lps = 500, .events_per_lp = 2, .mean = mean, .distribution = kDistributions[i]};
    const double executions = end / mean + (variance[i] - mean * mean) / (2 * mean * mean);
    const double error = std::sqrt(1000 * variance[i] * end / std::pow(mean, 3));
    EXPECT_NEAR(static_cast<double>(run(p, options(end, lookahead)).total.events), 1000 * executions, 4 * error);
  }
}

TEST(Phold, TiesAreAllAtMultiplesOfTheMean) {
  EXPECT_EQ(run({.lps = 50, .distribution = phold::Distribution::ties}, options(80, 0.25)).total.events, 50u * 79u);
}

TEST(Phold, RemoteEventsGoToAnyLp) {
  for (double remote : {0.0, 0.3, 1.0}) {
    const Result result = run({.lps = 20, .events_per_lp = 10, .remote = remote, .payload = "16"}, options(200, 0.1));
    const auto events = static_cast<double>(result.total.events);
    const double share = remote * (1 - 1.0 / 20);
    EXPECT_NEAR(static_cast<double>(result.total.sent), share * events, 4 * std::sqrt(share * (1 - share) * events));
  }
}

// Of eight LPs the first eighth is one: all events go there, once, and stay.
TEST(Phold, ImbalancePrefersTheFirstEighth) {
  EXPECT_EQ(run({.lps = 8, .events_per_lp = 5, .remote = 1, .imbalance = 1}, options(50, 0.1)).total.sent, 7u * 5u);
}

TEST(Phold, PayloadsAreAsOftenAsAsked) {
  const Result result = run({.lps = 1000, .payload = "8:6,64:3,1024:1"}, options(80, 0.1));
  const auto events = static_cast<double>(result.total.events);
  ASSERT_EQ(result.events_by_type.size(), 8u);
  const double share[] = {0.6, 0, 0, 0.3, 0, 0, 0, 0.1};
  for (std::size_t kind = 0; kind < 8; ++kind)
    EXPECT_NEAR(static_cast<double>(result.events_by_type[kind]), share[kind] * events,
                4 * std::sqrt(share[kind] * (1 - share[kind]) * events));
}

TEST(Phold, PayloadsThatMakeNoSenseAreRefused) {
  for (const char* payload : {"", "4", "9", "2048", "8:", "8:0", "8:-1", "8:nan", "8;9", "8:1:2", "8,,16", "x"})
    EXPECT_THROW(run({.lps = 1, .payload = payload}, options(1, 0.1)), pdes::Error) << payload;
}

// ---- Torus

TEST(Torus, HasFourNeighboursThatAgree) {
  const Torus torus{5, 3};
  for (pdes::LpId id = 0; id < torus.size(); ++id) {
    std::set<pdes::LpId> all;
    torus(id, [&](pdes::LpId to) { all.insert(to); });
    EXPECT_EQ(all.size(), 5u);
    EXPECT_LT(*all.rbegin(), torus.size());
    for (unsigned direction = 0; direction < 4; ++direction)
      EXPECT_EQ(torus.neighbour(torus.neighbour(id, direction), direction ^ 1), id);
  }
  EXPECT_EQ(torus.neighbour(0, 0), 4u);
  EXPECT_EQ(torus.neighbour(0, 2), 10u);
  for (unsigned direction = 0; direction < 4; ++direction) EXPECT_EQ((Torus{1, 1}).neighbour(0, direction), 0u);
}

// ---- PCS

// Share of calls that find `channels` busy if each of n sources calls at rate `load` / (mean call) while it has none:
// Engset's formula.  It reads the state that an arriving call sees, which is that of n - 1 sources.
double engset(double n, unsigned channels, double load) {
  double term = 1, sum = 1;
  for (unsigned k = 1; k <= channels; ++k) sum += term *= (n - k) / k * load;
  return term / sum;
}

double erlang_b(unsigned channels, double load) {
  double blocking = 1;
  for (unsigned k = 1; k <= channels; ++k) blocking = load * blocking / (k + load * blocking);
  return blocking;
}

// Between two times: a run to the later one begins with the same events as one to the earlier.
struct Between {
  Between(const pcs::Parameters& p, double from, double to, double lookahead, std::uint64_t seed)
      : early(run(p, options(from, lookahead, seed))), late(run(p, options(to, lookahead, seed))) {}
  double operator()(const char* name) const { return number(late, name) - number(early, name); }
  double blocking() const { return (*this)("channel_blocks") / ((*this)("attempts") - (*this)("busy_lines")); }
  Result early, late;
};

// Nobody moves, so a cell is a loss system of 16 sources.
TEST(Pcs, BlocksAsEngsetSays) {
  const pcs::Parameters p{.torus = {16, 16}, .portables = 16, .channels = 6, .move = 1e15};
  expect_near({{"blocking", engset(16, 6, p.call / p.next_call), 0.005}},
              [&](std::uint64_t seed) { return std::vector{Between(p, 1000, 8000, 1, seed).blocking()}; });
}

// Very many portables that seldom call: arrivals are as good as a Poisson process of 8 erlang.
TEST(Pcs, BlocksAsErlangSays) {
  pcs::Parameters p{.torus = {6, 6}, .portables = 8000, .channels = 10, .move = 1e15};
  p.next_call = p.portables * p.call / 8;
  expect_near(
      {{"blocking", erlang_b(10, 8), 0.01}},
      [&](std::uint64_t seed) { return std::vector{Between(p, 1000, 50000, 1, seed).blocking()}; }, 16);
}

// Channels for all: a portable is in a call for call / (call + next_call) of its time, wherever it moves, and attempts
// to call at the same rate always.
TEST(Pcs, PortablesCallAndMoveIndependently) {
  const pcs::Parameters p{.torus = {16, 16}, .portables = 4, .channels = 1000, .move = 50};
  const double from = 1000, to = 5000, busy = p.call / (p.call + p.next_call);
  const double calls = 4 * 16 * 16 * (to - from) / p.next_call, moves = 4 * 16 * 16 * (to - from) / p.move;
  expect_near({{"attempts", calls, 0.005},
               {"busy lines", busy * calls, 0.01},
               {"calls moved", busy * moves, 0.005},
               {"moved", moves, 0.005}},
              [&](std::uint64_t seed) {
                const Between run(p, from, to, 0.001, seed);
                const auto moved = static_cast<double>(run.late.total.sent - run.early.total.sent);
                return std::vector{run("attempts"), run("busy_lines"), run("portables_out"), moved};
              });
}

// A Poisson process for each portable, and nothing after the end, not even during calls that last longer.
TEST(Pcs, CountsAttemptsUntilTheEnd) {
  const pcs::Parameters p{.torus = {64, 64}, .channels = 16, .move = 1e15};
  const double theory = 16 * 64 * 64 * 400 / p.next_call;
  EXPECT_NEAR(number(run(p, options(400, 1)), "attempts"), theory, 4 * std::sqrt(theory));
}

TEST(Pcs, KeepsItsPortablesAndChannels) {
  const pcs::Parameters p{.torus = {8, 8}, .portables = 20, .channels = 5, .reserve = 2, .move = 100};
  const Result result = run(p, options(2000, 5));
  EXPECT_EQ(result.total.dropped, 20u * 64u);
  const double calls = number(result, "attempts") - number(result, "busy_lines") - number(result, "channel_blocks");
  const double moved = number(result, "portables_out") - number(result, "portables_in");
  EXPECT_GT(moved, 0);  // on the way
  EXPECT_GT(number(result, "handoff_blocks"), 0);
  EXPECT_GT(number(result, "busy_channels"), 5 * 64 / 2);
  EXPECT_LE(number(result, "busy_channels"), 7 * 64);
  EXPECT_EQ(number(result, "busy_channels"),
            calls - number(result, "completions") - number(result, "handoff_blocks") - moved);
}

TEST(Pcs, ReserveIsForCallsThatMoveIn) {
  const pcs::Parameters none{.torus = {4, 4}, .channels = 0, .reserve = 9};
  const Result blocked = run(none, options(500, 1));
  EXPECT_GT(number(blocked, "attempts"), 0);
  EXPECT_EQ(number(blocked, "attempts"), number(blocked, "channel_blocks"));
  pcs::Parameters p{.torus = {8, 8}, .channels = 5, .move = 200};
  const double without = number(run(p, options(2000, 1)), "handoff_blocks");
  p.reserve = 2;
  EXPECT_LT(number(run(p, options(2000, 1)), "handoff_blocks"), without / 4);
}

// 128 x 128 cells until 500.  The published model blocked 815 calls, since its portables walk less (see the docs).
TEST(Pcs, IsNearThePublishedNumbers) {
  const Result result = run(pcs::Parameters{}, options(500, 1));
  EXPECT_NEAR(static_cast<double>(result.total.events), 473275, 0.01 * 473275);
  EXPECT_NEAR(number(result, "attempts") - number(result, "busy_lines"), 406380 - 133821, 0.01 * 272559);
  EXPECT_NEAR(number(result, "handoff_blocks"), 50, 4 * std::sqrt(50));
  EXPECT_NEAR(number(result, "channel_blocks"), 1015, 4 * 55);
}

// ---- Airport

struct Flow {
  double throughput;  // of an airport
  double waiting;     // for the runway
};

// A closed network of equal single servers and one delay, by mean value analysis.
Flow closed_network(std::uint32_t airports, std::uint32_t planes, double service, double delay) {
  double queue = 0, throughput = 0, response = 0;
  for (std::uint32_t k = 1; k <= planes * airports; ++k) {
    response = service * (1 + queue);
    throughput = k / (delay + response) / airports;
    queue = throughput * response;
  }
  return {throughput, response - service};
}

TEST(Airport, QueuesAsMeanValueAnalysisSays) {
  for (std::uint32_t planes : {20u, 50u}) {
    const airport::Parameters p{.torus = {8, 8}, .planes = planes, .landing = 0.5};
    const Flow theory = closed_network(p.torus.size(), planes, p.landing, p.ground + p.flight);
    const double from = 200, to = 1200;
    expect_near({{"landings", theory.throughput * (to - from) * p.torus.size(), 0.003}, {"waiting", theory.waiting, 0.02}},
                [&](std::uint64_t seed) {
                  const auto early = run(p, options(from, 0.5, seed)).statistics.at("waiting");
                  const auto late = run(p, options(to, 0.5, seed)).statistics.at("waiting");
                  const auto landings = static_cast<double>(late.count - early.count);
                  return std::vector{landings, (late.sum.value() - early.sum.value()) / landings};
                });
  }
}

TEST(Airport, KeepsItsPlanes) {
  for (double landing : {0.5, 10.0}) {
    const airport::Parameters p{.torus = {8, 4}, .planes = 30, .landing = landing};
    const Result result = run(p, options(300, 0.5));
    EXPECT_EQ(result.total.dropped, 30u * 32u);
    const double flying = number(result, "departures") - number(result, "waiting") - number(result, "in_sky");
    EXPECT_GT(flying, 0);
    EXPECT_GT(number(result, "in_sky"), 0);
    EXPECT_EQ(number(result, "on_ground") + number(result, "in_sky") + flying, 30 * 32);
  }
}

// A runway that is never idle lands one plane per mean landing time.
TEST(Airport, SaturatedRunwayIsNeverIdle) {
  const airport::Parameters p{.torus = {16, 16}};
  const auto landed = [&](double end) { return number(run(p, options(end, 0.5)), "waiting"); };
  EXPECT_NEAR(landed(1100) - landed(100), 25600, 4 * std::sqrt(25600));
}

// 32 x 32 airports with 50 planes each until 1000, published without lookahead.
TEST(Airport, IsNearThePublishedNumbers) {
  const Result result = run(airport::Parameters{}, options(1000, 0.5));
  EXPECT_NEAR(static_cast<double>(result.total.events), 403570, 0.01 * 403570);
  EXPECT_NEAR(result.statistics.at("waiting_by_airport").mean(), 328.48, 0.01 * 328.48);
}

}  // namespace

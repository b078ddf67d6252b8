// Networks of queues against theory.
#include <gtest/gtest.h>

#include <vector>

#include "models/closed.h"
#include "models/jackson.h"
#include "theory.h"

namespace {

using pdes::Result;
using pdes::test::expect_near, pdes::test::mean, pdes::test::number, pdes::test::options, pdes::test::run;

// ---- Jackson

TEST(Jackson, ErlangsFormulaIsThatOfTheTables) {
  EXPECT_DOUBLE_EQ(jackson::erlang_c(1, 0.3), 0.3);
  EXPECT_DOUBLE_EQ(jackson::erlang_c(2, 0.5), 1.0 / 3);
  EXPECT_NEAR(jackson::erlang_c(3, 0.8), 0.6472, 5e-5);
}

TEST(Jackson, StationsWaitAsIfTheyWereAlone) {
  const jackson::Parameters p{.stations = 30, .load = 0.7, .warm_up = 300};
  expect_near({{"waiting 1", jackson::mean_waiting(p, 1), 0.04},
               {"waiting 2", jackson::mean_waiting(p, 2), 0.04},
               {"waiting 3", jackson::mean_waiting(p, 3), 0.04},
               {"found 1", jackson::mean_present(p, 1), 0.04},
               {"found 2", jackson::mean_present(p, 2), 0.04},
               {"found 3", jackson::mean_present(p, 3), 0.04},
               {"arrivals", 10 * p.flow() * 2700, 0.01}},
              [&](std::uint64_t seed) {
                const Result result = run(options(3000, 1, seed), [&](auto& simulation) { jackson::add(simulation, p); });
                return std::vector{mean(result, "waiting_1"), mean(result, "waiting_2"), mean(result, "waiting_3"),
                                   mean(result, "found_1"),   mean(result, "found_2"),   mean(result, "found_3"),
                                   number(result, "found_2")};
              });
}

// ---- Closed

TEST(Closed, MeanValueAnalysisIsExactForEqualStations) {
  const closed::Parameters p{.stations = 7, .customers = 12, .skew = 0, .service = 2, .walk = 0};
  const closed::Steady theory = closed::mean_value_analysis(p);
  EXPECT_DOUBLE_EQ(theory.visits, 12 * 7 / (2.0 * (12 + 7 - 1)));
  EXPECT_DOUBLE_EQ(theory.found, 11.0 / 7);
}

TEST(Closed, StationsAreVisitedAsOftenAsTheSkewSays) {
  const std::vector<double> sums = closed::cumulative_shares({.stations = 3, .skew = 1});
  EXPECT_DOUBLE_EQ(sums[0], 6.0 / 11);
  EXPECT_DOUBLE_EQ(sums[1], 9.0 / 11);
  EXPECT_DOUBLE_EQ(sums[2], 1);
}

TEST(Closed, QueuesAsMeanValueAnalysisSays) {
  const closed::Parameters p{.stations = 10, .customers = 30, .skew = 0.3, .walk = 8, .warm_up = 200};
  const std::vector<double> shares = closed::cumulative_shares(p);
  const closed::Steady theory = closed::mean_value_analysis(p);
  expect_near({{"visits", 4000 * theory.visits, 0.01}, {"waiting", theory.waiting, 0.02}, {"found", theory.found, 0.02}},
              [&](std::uint64_t seed) {
                const Result result =
                    run(options(4200, 2, seed), [&](auto& simulation) { closed::add(simulation, p, shares); });
                return std::vector{number(result, "waiting"), mean(result, "waiting"), mean(result, "found")};
              });
}

TEST(Closed, KeepsItsCustomers) {
  const closed::Parameters p{.stations = 7, .customers = 25, .skew = 1, .walk = 5};
  const std::vector<double> shares = closed::cumulative_shares(p);
  const Result result = run(options(300, 5), [&](auto& simulation) { closed::add(simulation, p, shares); });
  EXPECT_EQ(result.total.dropped, 25u);  // each is in one event
  EXPECT_LE(number(result, "present"), 25);
  EXPECT_GT(number(result, "present"), 0);
}

}  // namespace

// Traffic against theory.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "models/traffic.h"
#include "theory.h"

namespace {

using pdes::Result;
using pdes::test::expect_near, pdes::test::number, pdes::test::options, pdes::test::run;

// ---- Traffic

Result run_traffic(const traffic::Parameters& p, double end, std::uint64_t seed = 1) {
  return run(options(end, 0.5, seed), [&](auto& simulation) { traffic::add(simulation, p); });
}

TEST(Traffic, ALoneCarGainsOneEachStep) {
  traffic::Parameters p{.cells = 1000, .segments = 7, .cars = 1, .dawdle = 0, .warm_up = 0};
  EXPECT_EQ(number(run_traffic(p, 1000), "cells_moved"), 5 * 1000 - (4 + 3 + 2 + 1));
  EXPECT_EQ(number(run_traffic(p, 3), "cells_moved"), 1 + 2 + 3);
  p.max_speed = 9;
  EXPECT_EQ(number(run_traffic(p, 1000), "cells_moved"), 9 * 1000 - 36);
}

TEST(Traffic, FlowsWithoutDawdlingAsTheFreeCellsOrTheSpeedAllow) {
  for (const std::uint32_t cars : {30u, 50u, 60u, 150u, 240u, 300u}) {
    const traffic::Parameters p{.cells = 300, .segments = 11, .cars = cars, .dawdle = 0, .warm_up = 600};
    EXPECT_EQ(number(run_traffic(p, 700), "cells_moved"), 100 * std::min(cars * 5, 300 - cars)) << cars;
  }
}

// At speed 1 the probability of a state with n groups of cars is in proportion to dawdle^-n (Schreckenberg et al. 1995), and
// on a ring there are cells / n (cars - 1 over n - 1) (holes - 1 over n - 1) of them.  The first car of each group moves
// unless it dawdles.
double flow_at_speed_one(const traffic::Parameters& p) {
  const double cars = p.cars, holes = p.cells - p.cars;
  double states = 1, all = 0, groups = 0;  // of n groups, without the factor cells
  for (double n = 1; n <= std::min(cars, holes); ++n) {
    all += states / n;
    groups += states;
    states *= (cars - n) * (holes - n) / (n * n) / p.dawdle;
  }
  return (1 - p.dawdle) * groups / all / p.cells;
}

TEST(Traffic, FlowsAtSpeedOneAsTheRingOfItsSizeDoes) {
  const traffic::Parameters p{.cells = 60, .segments = 6, .cars = 21, .max_speed = 1, .dawdle = 0.3, .warm_up = 1000};
  expect_near({{"flow", flow_at_speed_one(p), 0.002}},
              [&](std::uint64_t seed) { return std::vector{traffic::flow(p, run_traffic(p, 8000, seed))}; });
  const traffic::Parameters long_one{.cells = 600, .cars = 210, .max_speed = 1, .dawdle = 0.3};
  EXPECT_NEAR(flow_at_speed_one(long_one), traffic::flow_theory(long_one), 3e-4);
}

TEST(Traffic, KeepsItsCars) {
  const traffic::Parameters p{.cells = 600, .segments = 50, .cars = 200};
  EXPECT_EQ(number(run_traffic(p, 500.25), "cars"), 200);  // none is between two segments then
}

// Without chance the cut does not matter.
TEST(Traffic, SegmentsAreOneRoad) {
  traffic::Parameters p{.cells = 500, .segments = 1, .cars = 120, .dawdle = 0, .warm_up = 0};
  const double moved = number(run_traffic(p, 100.25), "cells_moved");
  for (const std::uint32_t segments : {2u, 9u, 100u}) {
    p.segments = segments;
    EXPECT_EQ(number(run_traffic(p, 100.25), "cells_moved"), moved) << segments;
  }
}

}  // namespace

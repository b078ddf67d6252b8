// Stop and wait against theory, and that its end is where the senders say.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "models/arq.h"
#include "theory.h"

namespace {

using pdes::Result;
using pdes::test::expect_near, pdes::test::mean, pdes::test::number, pdes::test::options, pdes::test::run;

Result wires(const arq::Parameters& p, double end, std::uint64_t seed) {
  return run(options(end, 1, seed), [&](auto& simulation) { arq::add(simulation, p); });
}

TEST(Arq, TakesAsLongAsInTheory) {
  const arq::Parameters p{.wires = 50, .loss = 0.2, .patience = 2.5, .precision = 0};
  const double lost = 1 - p.success();
  EXPECT_DOUBLE_EQ(p.time(), 2 + 2.5 * 0.36 / 0.64);
  expect_near({{"mean", p.time(), 0.01}, {"in batches", p.time(), 0.01}, {"retrying", p.retrying(), 0.02}},
              [&](std::uint64_t seed) {
                const Result result = wires(p, 2000, seed);
                return std::vector{mean(result, "took"), mean(result, "mean_time"), mean(result, "retrying")};
              });
  const Result result = wires(p, 2000, 1);
  EXPECT_FALSE(result.ended_by_model);
  const auto& took = result.statistics.at("took");
  for (const double q : {0.5, 0.9, 0.99}) {
    const double tries = std::ceil(std::log(1 - q) / std::log(lost)) - 1;
    EXPECT_NEAR(took.quantile(q), 2 + 2.5 * tries, 0.02 * took.quantile(q)) << q;
  }
}

// What nobody loses is never sent twice, and whoever has an answer does not wait.
TEST(Arq, NoTimerIsHeardInVain) {
  const Result result = wires({.wires = 10, .loss = 0, .precision = 0}, 300, 1);
  EXPECT_EQ(mean(result, "retrying"), 0);
  EXPECT_NEAR(result.statistics.at("took").most, 2, 1e-9);
  EXPECT_EQ(number(result, "took"), 10 * 149);  // the first begins within a unit of time
  EXPECT_EQ(result.events_by_type[3], result.total.cancelled);
}

TEST(Arq, EndsWhenAllSendersAreSure) {
  const arq::Parameters p{.wires = 30, .precision = 0.05, .batch = 10};
  const Result result = wires(p, 1e5, 1), longer = wires({.wires = 30, .precision = 0.025, .batch = 10}, 1e5, 1);
  EXPECT_TRUE(result.ended_by_model);
  EXPECT_EQ(number(result, "sure"), 30);
  EXPECT_LT(result.reached, 1e5);
  // Four times as many packets for half the width; of thirty senders, the last one counts.
  EXPECT_NEAR(longer.reached / result.reached, 4, 1.5);
  EXPECT_NEAR(mean(result, "mean_time"), p.time(), 0.05 * p.time());
}

}  // namespace

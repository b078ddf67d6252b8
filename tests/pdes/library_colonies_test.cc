// A branching process of LPs that are made and end: who dies out, how large its family was, how long a cell lives.
#include <gtest/gtest.h>

#include <vector>

#include "models/colonies.h"
#include "theory.h"

namespace {

using pdes::Result;
using pdes::test::expect_near, pdes::test::mean, pdes::test::number, pdes::test::options, pdes::test::run;

Result grown(const colonies::Parameters& p, double end, std::uint64_t seed) {
  return run(options(end, 0.1, seed), [&](auto& simulation) { colonies::add(simulation, p); });
}

TEST(Colonies, WhoGrowsDiesOutWithTheProbabilityOfTheory) {
  for (const std::uint32_t founders : {1u, 3u}) {
    const colonies::Parameters p{.colonies = 400, .founders = founders, .room = 60, .division = 1.5};
    EXPECT_DOUBLE_EQ(colonies::extinction(p), founders == 1 ? 1 / 1.5 : 8.0 / 27);
    EXPECT_DOUBLE_EQ(colonies::family(p), 3 * founders);
    expect_near({{"died out", colonies::extinction(p), 0.05}, {"family", colonies::family(p), 0.05}},
                [&](std::uint64_t seed) {
                  const Result result = grown(p, 40, seed);
                  EXPECT_EQ(number(result, "family") + number(result, "full"), p.colonies);
                  return std::vector{number(result, "family") / p.colonies, mean(result, "family")};
                });
  }
}

// Then nothing is left: all that were made have ended, and the numbers of what they reported are exact.
TEST(Colonies, WhoShrinksDiesOut) {
  const colonies::Parameters p{.colonies = 500, .room = 150, .division = 0.75};
  EXPECT_EQ(colonies::extinction(p), 1);
  EXPECT_DOUBLE_EQ(colonies::family(p), 4);
  expect_near({{"family", 4, 0.05}, {"life", 1 / p.death, 0.02}}, [&](std::uint64_t seed) {
    const Result result = grown(p, 1000, seed);
    EXPECT_EQ(number(result, "family"), p.colonies);
    EXPECT_EQ(number(result, "refused"), 0);
    EXPECT_EQ(result.total.ended, result.total.made);
    EXPECT_EQ(number(result, "life"), static_cast<double>(result.total.ended));
    EXPECT_EQ(number(result, "divisions"), static_cast<double>(result.total.made - p.colonies));
    return std::vector{mean(result, "family"), mean(result, "life")};
  });
}

// What the colonies count is what there is.
TEST(Colonies, CountTheirCells) {
  const Result result = grown({.colonies = 50, .room = 60, .division = 2, .signal = 0.5}, 30, 1);
  EXPECT_GT(number(result, "refused"), 100);
  // Some have been born or have died, and the message is on its way.
  EXPECT_NEAR(number(result, "cells"), static_cast<double>(result.total.made - result.total.ended), 0.5 * 50 * 60);
  EXPECT_LE(number(result, "cells"), 50 * 60);
  EXPECT_EQ(result.total.undelivered, 0u);
}

}  // namespace

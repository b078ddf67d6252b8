// What tests of models against theory share.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "pdes/pdes.h"

namespace pdes::test {

struct Theory {
  const char* name;
  double value, most_error;
};

// Numbers of independent runs: what theory says must lie within four standard errors of their means, and these must be
// small.
inline void expect_near(const std::vector<Theory>& theories,
                        const std::function<std::vector<double>(std::uint64_t seed)>& numbers_of, std::uint64_t runs = 8) {
  std::vector<std::vector<double>> numbers;
  for (std::uint64_t seed = 1; seed <= runs; ++seed) numbers.push_back(numbers_of(seed));
  for (std::size_t i = 0; i < theories.size(); ++i) {
    double mean = 0, squares = 0;
    for (const auto& of_run : numbers) mean += of_run[i] / static_cast<double>(runs);
    for (const auto& of_run : numbers) squares += (of_run[i] - mean) * (of_run[i] - mean);
    const double error = std::sqrt(squares / static_cast<double>(runs * (runs - 1)));
    EXPECT_NEAR(mean, theories[i].value, 4 * error) << theories[i].name;
    EXPECT_LT(error, theories[i].most_error * theories[i].value) << theories[i].name;
  }
}

// What adds the LPs of a model; whatever it captures outlives the run.
using Model = std::function<void(Simulation&)>;

inline Result run(const Options& chosen, const Model& model) {
  Simulation simulation(chosen);
  model(simulation);
  return simulation.run();
}

inline double number(const Result& result, const std::string& name) {
  return static_cast<double>(result.statistics.count_of(name));
}
inline double mean(const Result& result, const std::string& name) { return result.statistics.at(name).mean(); }

inline Options options(double end, double lookahead, std::uint64_t seed = 1) {
  return {.end = end, .lookahead = lookahead, .seed = seed};
}

}  // namespace pdes::test

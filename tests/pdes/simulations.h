// What tests of whole simulations share.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <type_traits>

#include "pdes/pdes.h"

namespace pdes::test {

// Runs `lps` LPs, each as make(id) returns it.
template <class Make>
Result run(const Options& options, LpId lps, Make make, Simulation::Neighbours neighbours = {}) {
  Simulation simulation(options);
  simulation.add<std::invoke_result_t<Make, LpId>>(lps, make);
  simulation.set_neighbours(std::move(neighbours));
  return simulation.run();
}

inline void expect_same(const Result& result, const Result& expected) {
  EXPECT_EQ(result.digest, expected.digest);
  EXPECT_EQ(result.total.events, expected.total.events);
  EXPECT_EQ(result.total.sent, expected.total.sent);
  EXPECT_EQ(result.total.dropped, expected.total.dropped);
  EXPECT_EQ(result.events_by_type, expected.events_by_type);
  EXPECT_EQ(result.statistics.digest(), expected.statistics.digest());
}

inline std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) { return error.what(); }
  return "no error";
}

}  // namespace pdes::test

// What tests of whole simulations share.
#pragma once

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

inline std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) { return error.what(); }
  return "no error";
}

}  // namespace pdes::test

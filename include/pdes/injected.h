// An event from outside of the simulation (Simulation::inject), as the run took it: given to Simulation::replay before another
// run of the same model, it is executed at the same place among all others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pdes/event.h"

namespace pdes {

struct Injected {
  Time time = 0;  // at which it was executed
  LpId to = 0;
  std::uint16_t type = 0;  // in the model's list
  Priority priority = 0;
  std::vector<std::byte> payload{};
};

// Their source, which is no LP where there are any: among events of one time and priority they come last.
inline constexpr LpId kOutside = kMaxLps - 1;

}  // namespace pdes

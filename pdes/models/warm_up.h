// What comes before the warm-up is over does not count.
#pragma once

#include "pdes/simulation.h"

inline void require_end_after(double warm_up, const pdes::Simulation& simulation) {
  if (warm_up > 0 && warm_up >= simulation.options().end)
    throw pdes::Error("--warm-up must be below --end, or nothing counts");
}

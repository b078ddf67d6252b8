// The graph of the LPs, divided by METIS (Karypis, Kumar 1998), which is loaded when there is a graph to divide.  The same
// graph gets the same division wherever METIS is the same.  METIS takes rand(), with a seed of its own, and while it works
// SIGTERM and SIGABRT end it with an Error.
#pragma once

#include "pdes/lp_graph.h"

namespace pdes {

// What a Simulation has from the start.  It throws Error if METIS cannot be loaded.
Partitioner metis_partitioner();

}  // namespace pdes

// The graph of the LPs, divided by METIS (Karypis, Kumar 1998): Simulation::set_partitioner(pdes::metis_partitioner()).
// The same graph gets the same division wherever METIS is the same.  METIS takes rand(), with a seed of its own, and while it
// works SIGTERM and SIGABRT end it with an Error.
#pragma once

#include "pdes/lp_graph.h"

namespace pdes {

// Throws Error if hmalloc was built without METIS; in the library for other languages, if it cannot be loaded.
Partitioner metis_partitioner();

}  // namespace pdes

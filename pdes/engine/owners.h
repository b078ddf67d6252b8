// Which thread gets which LPs at the start (Options::partitioning).
#pragma once

#include <cstdint>
#include <vector>

#include "pdes/lp_graph.h"
#include "pdes/options.h"
#include "pdes/simulation.h"

namespace pdes {

LpGraph graph_of(LpId lps, const Simulation::Neighbours& neighbours);

// The thread of each LP, the same on every rank; threads are numbered over all ranks.  Every rank calls it.
std::vector<std::uint16_t> owners(const Options& options, LpId lps, unsigned threads,
                                  const Simulation::Neighbours& neighbours, const Partitioner& partitioner, Ranks* ranks);

}  // namespace pdes

// Who may send to whom, as a graph to be divided (Partitioning::graph).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "pdes/event.h"

namespace pdes {

// Undirected: each link is listed once at each of its two ends, with the same weight, and none leads from an LP to itself.
struct LpGraph {
  std::vector<std::uint64_t> first;    // of each LP's links; one further at the end
  std::vector<LpId> to;                // where each link leads, rising for each LP
  std::vector<std::uint32_t> weights;  // of each link: how often it was declared, in both directions together

  LpId size() const noexcept { return static_cast<LpId>(first.size() - 1); }
};

// Divides a graph among so many threads, at least two: the thread of each LP.  What costs is the links between two threads,
// by their weight; a thread may be left without LPs.
using Partitioner = std::function<std::vector<std::uint16_t>(const LpGraph& graph, unsigned threads)>;

}  // namespace pdes

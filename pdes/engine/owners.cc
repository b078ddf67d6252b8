#include "engine/owners.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <numeric>
#include <string>

#include "engine/neighbours.h"
#include "pdes/mpi.h"
#include "pdes/random.h"

namespace pdes {
namespace {

std::vector<std::uint16_t> divided(LpId lps, unsigned threads, const Simulation::Neighbours& neighbours,
                                   const Partitioner& partitioner) {
  std::vector<std::uint16_t> owner = partitioner(graph_of(lps, neighbours), threads);
  if (owner.size() != lps || std::any_of(owner.begin(), owner.end(), [=](auto thread) { return thread >= threads; }))
    throw Error("the partitioner did not give each LP one of the threads");
  return owner;
}

// The first rank divides for all: another one's library may come to something else.  If it cannot, none starts.
std::vector<std::uint16_t> divided_on_first(LpId lps, unsigned threads, const Simulation::Neighbours& neighbours,
                                            const Partitioner& partitioner, Ranks& ranks) {
  std::vector<std::uint16_t> owner;
  std::exception_ptr failure;
  if (ranks.rank() == 0) {
    try {
      owner = divided(lps, threads, neighbours, partitioner);
    } catch (...) { failure = std::current_exception(); }
  }
  std::vector<std::byte> message(owner.size() * sizeof(owner[0]));  // empty after a failure
  if (!owner.empty()) std::memcpy(message.data(), owner.data(), message.size());
  ranks.broadcast(message);
  if (failure != nullptr) std::rethrow_exception(failure);
  owner.resize(lps);
  if (message.size() != lps * sizeof(owner[0])) throw OtherRankFailed("the run cannot start on the first rank");
  std::memcpy(owner.data(), message.data(), message.size());
  return owner;
}

}  // namespace

LpGraph graph_of(LpId lps, const Simulation::Neighbours& neighbours) {
  std::vector<std::uint64_t> ends;  // of each link, from either side: one LP above the other
  for (LpId id = 0; id < lps; ++id) {
    neighbours(id, [&](LpId to) {
      check_neighbour(id, to, lps);
      if (to == id) return;
      ends.push_back(std::uint64_t{id} << 32 | to);
      ends.push_back(std::uint64_t{to} << 32 | id);
    });
  }
  std::sort(ends.begin(), ends.end());
  LpGraph graph;
  graph.first.resize(std::size_t{lps} + 1);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (i > 0 && ends[i] == ends[i - 1]) {
      ++graph.weights.back();
      continue;
    }
    ++graph.first[(ends[i] >> 32) + 1];
    graph.to.push_back(static_cast<LpId>(ends[i]));
    graph.weights.push_back(1);
  }
  std::partial_sum(graph.first.begin(), graph.first.end(), graph.first.begin());
  return graph;
}

std::vector<std::uint16_t> owners(const Options& options, LpId lps, unsigned threads,
                                  const Simulation::Neighbours& neighbours, const Partitioner& partitioner, Ranks* ranks) {
  if (options.partitioning == Partitioning::graph)
    return ranks == nullptr ? divided(lps, threads, neighbours, partitioner)
                            : divided_on_first(lps, threads, neighbours, partitioner, *ranks);
  std::vector<std::uint16_t> owner(lps);
  for (LpId id = 0; id < lps; ++id) {
    std::uint64_t chosen = id;
    switch (options.partitioning) {
      case Partitioning::blocks: chosen = std::uint64_t{id} * threads / lps; break;
      case Partitioning::round_robin: chosen = id % threads; break;
      case Partitioning::random: chosen = mix(mix(options.seed) + id) % threads; break;
      case Partitioning::graph: break;
    }
    owner[id] = static_cast<std::uint16_t>(chosen);
  }
  return owner;
}

}  // namespace pdes

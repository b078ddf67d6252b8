// Who may send to whom: the links of a model whose LPs are no grid.  Graphs are made or read before the simulation, alike
// on every rank.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "pdes/pdes.h"

struct Edge {
  pdes::LpId from, to;
  std::uint32_t weight = 1;
};

class Graph {
 public:
  struct Link {
    pdes::LpId to;
    std::uint32_t weight;
  };
  enum class Ways : std::uint8_t { one, both };  // in which an edge is a link

  Graph() = default;
  Graph(pdes::LpId nodes, const std::vector<Edge>& edges, Ways ways);

  pdes::LpId size() const noexcept { return static_cast<pdes::LpId>(first_.size() - 1); }
  std::span<const Link> links(pdes::LpId node) const noexcept {
    return std::span(links_).subspan(first_[node], first_[node + 1] - first_[node]);  // in the order of the edges
  }

  // For Simulation::set_neighbours.
  void operator()(pdes::LpId id, const std::function<void(pdes::LpId)>& to) const {
    to(id);
    for (const Link& link : links(id)) to(link.to);
  }

 private:
  std::vector<std::size_t> first_{0};  // of each node's links; one further at the end
  std::vector<Link> links_;
};

// Each edge once, none from a node to itself.
std::vector<Edge> path(pdes::LpId nodes);
std::vector<Edge> star(pdes::LpId nodes);                        // node 0 is linked to all others
std::vector<Edge> ring(pdes::LpId nodes, std::uint32_t degree);  // each node to its nearest `degree`; throws Error

// A ring whose edges exchange their ends at random until nothing is left of it: a random graph with equal degrees.
std::vector<Edge> regular(pdes::LpId nodes, std::uint32_t degree, pdes::Random random);
// Watts, Strogatz 1998: each edge of a ring gets another end at random with that probability.
std::vector<Edge> small_world(pdes::LpId nodes, std::uint32_t degree, double rewired, pdes::Random random);

// A file with the two nodes of an edge on each line, of which the rest is ignored, as networkx writes it.  Edges that
// come again, in either direction, count once, and those from a node to itself not at all.  Throws Error.
std::vector<Edge> read_edges(const std::string& path);

// One more than the largest node of any edge.
pdes::LpId nodes_of(const std::vector<Edge>& edges);

#include "models/graph.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "models/number_file.h"

namespace {

constexpr std::uint64_t kExchanges = 10;  // of each edge; that many forget where they began

// The pairs of nodes that have an edge.
class Pairs {
 public:
  explicit Pairs(const std::vector<Edge>& edges) {
    for (const Edge& edge : edges) taken_.insert(key(edge.from, edge.to));
  }
  // False if there is one, or can be none.
  bool take(pdes::LpId a, pdes::LpId b) { return a != b && taken_.insert(key(a, b)).second; }
  void give_back(pdes::LpId a, pdes::LpId b) { taken_.erase(key(a, b)); }

 private:
  static std::uint64_t key(pdes::LpId a, pdes::LpId b) { return std::uint64_t{std::min(a, b)} << 32 | std::max(a, b); }
  std::unordered_set<std::uint64_t> taken_;
};

}  // namespace

Graph::Graph(pdes::LpId nodes, const std::vector<Edge>& edges, Ways ways) : first_(std::size_t{nodes} + 1) {
  for (const Edge& edge : edges) {
    ++first_[edge.from + 1];
    if (ways == Ways::both) ++first_[edge.to + 1];
  }
  for (std::size_t node = 0; node < nodes; ++node) first_[node + 1] += first_[node];
  links_.resize(first_.back());
  std::vector<std::size_t> next = first_;
  for (const Edge& edge : edges) {
    links_[next[edge.from]++] = {edge.to, edge.weight};
    if (ways == Ways::both) links_[next[edge.to]++] = {edge.from, edge.weight};
  }
}

std::vector<Edge> path(pdes::LpId nodes) {
  std::vector<Edge> edges;
  for (pdes::LpId node = 1; node < nodes; ++node) edges.push_back({node - 1, node});
  return edges;
}

std::vector<Edge> star(pdes::LpId nodes) {
  std::vector<Edge> edges;
  for (pdes::LpId node = 1; node < nodes; ++node) edges.push_back({0, node});
  return edges;
}

std::vector<Edge> ring(pdes::LpId nodes, std::uint32_t degree) {
  if (degree >= nodes) throw pdes::Error("a node cannot have as many neighbours as there are nodes");
  if (degree % 2 != 0 && nodes % 2 != 0) throw pdes::Error("an odd number of nodes cannot all have an odd degree");
  std::vector<Edge> edges;
  for (std::uint32_t step = 1; step <= degree / 2; ++step)
    for (pdes::LpId node = 0; node < nodes; ++node) edges.push_back({node, (node + step) % nodes});
  if (degree % 2 != 0)
    for (pdes::LpId node = 0; node < nodes / 2; ++node) edges.push_back({node, node + nodes / 2});
  return edges;
}

std::vector<Edge> regular(pdes::LpId nodes, std::uint32_t degree, pdes::Random random) {
  std::vector<Edge> edges = ring(nodes, degree);
  Pairs pairs(edges);
  for (std::uint64_t i = 0; i < kExchanges * edges.size(); ++i) {
    Edge& one = edges[random.integer(edges.size())];
    Edge& other = edges[random.integer(edges.size())];
    if (random.chance(0.5)) std::swap(other.from, other.to);
    if (!pairs.take(one.from, other.to)) continue;
    if (!pairs.take(other.from, one.to)) {
      pairs.give_back(one.from, other.to);
      continue;
    }
    pairs.give_back(one.from, one.to);
    pairs.give_back(other.from, other.to);
    std::swap(one.to, other.to);
  }
  return edges;
}

std::vector<Edge> small_world(pdes::LpId nodes, std::uint32_t degree, double rewired, pdes::Random random) {
  std::vector<Edge> edges = ring(nodes, degree);
  Pairs pairs(edges);
  for (Edge& edge : edges) {
    if (!random.chance(rewired)) continue;
    const auto to = static_cast<pdes::LpId>(random.integer(nodes));
    if (!pairs.take(edge.from, to)) continue;
    pairs.give_back(edge.from, edge.to);
    edge.to = to;
  }
  return edges;
}

std::vector<Edge> read_edges(const std::string& path) {
  std::vector<Edge> edges;
  Pairs pairs(edges);
  read_rows(path, {{"from", pdes::kMaxLps - 1}, {"to", pdes::kMaxLps - 1}}, Rest::ignored, [&](const auto& row) {
    const auto from = static_cast<pdes::LpId>(row[0]), to = static_cast<pdes::LpId>(row[1]);
    if (pairs.take(from, to)) edges.push_back({from, to});
  });
  if (edges.empty()) throw pdes::Error(path + ": has no edges");
  return edges;
}

pdes::LpId nodes_of(const std::vector<Edge>& edges) {
  pdes::LpId nodes = 0;
  for (const Edge& edge : edges) nodes = std::max({nodes, edge.from + 1, edge.to + 1});
  return nodes;
}

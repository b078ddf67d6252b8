// Epidemic: an illness spreads along the edges of a graph of people.  docs/pdes-library.md has the theory.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>

#include "models/graph.h"
#include "models/sir.h"

namespace epidemic {

enum class Contacts : std::uint8_t { regular, small_world, path, star };

struct Parameters {
  Contacts contacts = Contacts::regular;
  std::string edges{};  // a file of them, instead
  std::uint32_t people = 20000;
  std::uint32_t degree = 4;     // of a regular graph, or of the ring that becomes a small world
  double rewired = 0.1;         // share of the edges of a small world
  std::uint32_t infected = 20;  // at the start
  double latent = 1;            // time from infection until one is infectious
  double contact = 4;           // mean time between the contacts of two who are linked
  double recovery = 6;          // mean time that one is infectious
};

// The same on every rank: of the seed alone.
inline Graph make_graph(const Parameters& p, const pdes::Options& options) {
  pdes::Stream stream(options.seed, pdes::kMaxLps, 0);  // of no LP
  const pdes::Random random(stream, options.generator);
  std::vector<Edge> edges;
  if (!p.edges.empty()) edges = read_edges(p.edges);
  else if (p.contacts == Contacts::path) edges = path(p.people);
  else if (p.contacts == Contacts::star) edges = star(p.people);
  else if (p.contacts == Contacts::regular) edges = regular(p.people, p.degree, random);
  else edges = small_world(p.people, p.degree, p.rewired, random);
  return Graph(p.edges.empty() ? p.people : nodes_of(edges), edges, Graph::Ways::both);
}

struct Infection {
  std::uint64_t generation;  // of who gets it; of those who have it at the start: 0
};
struct Recovery {};

class Person {
 public:
  using Context = pdes::Context<Infection, Recovery>;
  Person(const Parameters& p, const Graph& graph) : p_(p), graph_(graph) {}

  void start(Context& context) {
    if (sir::is_chosen(context.id(), p_.infected, graph_.size())) fall_ill(context, 0);
  }

  void on(Context& context, const Infection& infection) {
    if (self_.susceptible > 0) fall_ill(context, infection.generation);
  }

  void on(Context&, const Recovery&) { self_.recover_one(); }

  void report(pdes::Report& report) const {
    self_.report(report);
    report.tally("infected_at", infected_at_);
    report.tally("generation", generation_);
  }

  template <class A>
  void serialize(A& archive) {
    archive(self_, infected_at_, generation_);
  }

 private:
  // All that will happen is decided now; whoever is infected twice ignores the later one.
  void fall_ill(Context& context, std::uint64_t generation) {
    auto random = context.random();
    self_.infect_one();
    infected_at_.add(context.now());
    generation_.add(static_cast<double>(generation));
    const pdes::Time infectious = random.exponential(p_.recovery);
    for (const Graph::Link& link : graph_.links(context.id())) {
      const pdes::Time contact = random.exponential(p_.contact);
      if (contact < infectious) context.send(link.to, p_.latent + contact, Infection{generation + 1});
    }
    context.send_self(p_.latent + infectious, Recovery{});
  }

  const Parameters& p_;
  const Graph& graph_;
  sir::People self_{.susceptible = 1};
  pdes::Tally infected_at_, generation_;  // one observation, if ever infected
};

// The probability that there is a contact while one of the two is infectious.
inline double transmissibility(const Parameters& p) { return p.recovery / (p.recovery + p.contact); }

// The share of people who get the illness in a large random regular graph (Newman 2002): the probability that a
// neighbour never passes it on is the least solution of u = 1 - T + T (1 - start) u^(degree - 1), where T is the
// transmissibility and start the share of those who have it at the start.
inline double final_size(const Parameters& p) {
  const double start = std::min(1.0, static_cast<double>(p.infected) / p.people), passes = transmissibility(p);
  double u = 0;
  for (int i = 0; i < 10000; ++i) u = 1 - passes + passes * (1 - start) * std::pow(u, p.degree - 1);
  return 1 - (1 - start) * std::pow(u, p.degree);
}

// Keeps references to both.
inline void add(pdes::Simulation& simulation, const Parameters& p, const Graph& graph) {
  if (p.latent < simulation.options().lookahead) throw pdes::Error("--latent must not be below the lookahead");
  simulation.add<Person>(graph.size(), [&](pdes::LpId) { return Person(p, graph); });
  simulation.set_neighbours(std::cref(graph));
}

}  // namespace epidemic

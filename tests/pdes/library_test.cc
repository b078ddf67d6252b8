// The library of models: that none of them depends on threads.  The other files of this name have theory, which
// docs/pdes-library.md derives.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "models/arq.h"
#include "models/closed.h"
#include "models/colonies.h"
#include "models/epidemic.h"
#include "models/jackson.h"
#include "models/network.h"
#include "models/pandemic.h"
#include "models/traffic.h"
#include "theory.h"

namespace {

using pdes::Options;
using pdes::Result;
using pdes::test::Model, pdes::test::options, pdes::test::run;

TEST(Library, ThreadsChangeNothing) {
  const jackson::Parameters jackson_small{.stations = 20};
  const closed::Parameters closed_small{.stations = 20, .customers = 60};
  const std::vector<double> shares = closed::cumulative_shares(closed_small);
  const epidemic::Parameters people{.people = 500};
  const Graph graph = epidemic::make_graph(people, options(1, 0));
  const pandemic::Parameters cities{.torus = {6, 5}};
  const Graph routes = pandemic::make_routes(cities);
  const network::Parameters lattice{.torus = {6, 5}}, groups{.kind = network::Kind::dragonfly};
  const network::TorusShape torus(lattice.torus);
  const network::Dragonfly dragonfly(2);
  const traffic::Parameters road{.cells = 500, .segments = 20, .cars = 150};
  const arq::Parameters wires{.wires = 20, .precision = 0.1, .batch = 10};
  const colonies::Parameters cells{.colonies = 20, .room = 50};
  const std::vector<std::pair<Options, Model>> models{
      {options(100, 1), [&](auto& simulation) { jackson::add(simulation, jackson_small); }},
      {options(100, 5), [&](auto& simulation) { closed::add(simulation, closed_small, shares); }},
      {options(60, 1), [&](auto& simulation) { epidemic::add(simulation, people, graph); }},
      {options(8, 0.25), [&](auto& simulation) { pandemic::add(simulation, cities, routes); }},
      {options(80, 2), [&](auto& simulation) { network::add(simulation, lattice, torus); }},
      {options(80, 2), [&](auto& simulation) { network::add(simulation, groups, dragonfly); }},
      {options(40, 0.5), [&](auto& simulation) { traffic::add(simulation, road); }},
      {options(1e4, 1), [&](auto& simulation) { arq::add(simulation, wires); }},
      {options(20, 0.1), [&](auto& simulation) { colonies::add(simulation, cells); }},
  };
  for (const auto& [chosen, model] : models) {
    const Result alone = run(chosen, model);
    EXPECT_GT(alone.total.sent, 100u);
    for (const unsigned threads : {2u, 3u})
      for (const pdes::Sync sync : {pdes::Sync::windows, pdes::Sync::neighbours}) {
        Options other = chosen;
        other.threads = threads;
        other.sync = sync;
        EXPECT_EQ(run(other, model).digest, alone.digest);
      }
  }
}

}  // namespace

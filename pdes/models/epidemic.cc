#include "models/epidemic.h"

#include "pdes/app.h"

int main(int argc, char** argv) {
  using epidemic::Contacts;
  epidemic::Parameters p;
  Graph graph;
  pdes::Options defaults;
  defaults.end = 300;
  pdes::App app("epidemic", "an illness that spreads along the edges of a graph");
  app.defaults(defaults)
      .lookahead([&] { return p.latent; })
      .choice("contacts", p.contacts,
              {{"regular", Contacts::regular},
               {"small-world", Contacts::small_world},
               {"path", Contacts::path},
               {"star", Contacts::star}},
              "who meets whom")
      .file("edges", p.edges, "instead, a file with the two nodes of an edge on each line")
      .option("people", p.people, "people, unless they are in the file", 1, pdes::kMaxLps)
      .option("degree", p.degree, "neighbours of each, if regular or a small world", 1, 1000)
      .option("rewired", p.rewired, "share of a small world's edges that go anywhere", 0, 1)
      .option("infected", p.infected, "people who have it at the start")
      .option("latent", p.latent, "time from infection until one is infectious", 0)
      .option("contact", p.contact, "mean time between the contacts of two neighbours", 0.001)
      .option("recovery", p.recovery, "mean time that one is infectious", 0);
  return app.run(
      argc, argv,
      [&](pdes::Simulation& simulation) {
        graph = epidemic::make_graph(p, simulation.options());
        epidemic::add(simulation, p, graph);
      },
      [&](const pdes::Result& result, pdes::Summary& summary) {
        const auto healthy = static_cast<double>(result.statistics.count_of("susceptible"));
        summary.add("share_ever_infected", 1 - healthy / graph.size());
        if (p.edges.empty() && p.contacts == Contacts::regular && p.infected > 0)
          summary.add("share_ever_infected_theory", epidemic::final_size(p));
      });
}

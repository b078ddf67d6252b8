#include "models/pandemic.h"

#include "pdes/app.h"

int main(int argc, char** argv) {
  pandemic::Parameters p;
  Graph routes;
  pdes::Options defaults;
  defaults.end = 200;
  pdes::App app("pandemic", "an illness that planes carry from city to city");
  app.defaults(defaults)
      .lookahead([&] { return p.flight; })
      .option("width", p.torus.width, "columns of cities", 1, Torus::kMax)
      .option("height", p.torus.height, "rows of cities", 1, Torus::kMax)
      .file("routes", p.routes, "instead, a file with from,to,passengers on each line")
      .option("residents", p.residents, "residents of each city", 0, 1000000000)
      .option("passengers", p.passengers, "passengers of each plane, without a file", 0, 1000000)
      .option("sources", p.sources, "cities where there are infected at the start")
      .option("infected", p.infected, "infected in each of these")
      .option("contacts", p.contacts, "contacts of an infected per unit of time", 0, 1e6)
      .option("recovery", p.recovery, "mean time that one is infectious", 0.001)
      .option("every", p.every, "time between two planes of a route", 0.001)
      .option("flight", p.flight, "time from city to city", 0);
  return app.run(
      argc, argv,
      [&](pdes::Simulation& simulation) {
        routes = pandemic::make_routes(p);
        pandemic::add(simulation, p, routes);
      },
      [&](const pdes::Result& result, pdes::Summary& summary) {
        const double people = static_cast<double>(p.residents) * routes.size();
        const double start = std::min(p.sources, routes.size()) * static_cast<double>(std::min(p.infected, p.residents));
        if (people == 0) return;
        summary.add("share_ever_infected", (start + static_cast<double>(result.statistics.count_of("infections"))) / people);
        summary.add("share_ever_infected_if_all_mix", pandemic::final_size(p, start / people));
      });
}

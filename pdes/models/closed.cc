#include "models/closed.h"

#include "models/warm_up.h"
#include "pdes/app.h"

int main(int argc, char** argv) {
  closed::Parameters p;
  std::vector<double> shares;
  pdes::Options defaults;
  defaults.end = 20000;
  defaults.lookahead = 5;
  pdes::App app("closed", "customers who go round in a closed network of queues");
  app.defaults(defaults)
      .option("stations", p.stations, "stations, of one server each", 1)
      .option("customers", p.customers, "customers, always the same")
      .option("skew", p.skew, "station i is visited in proportion to 1 / (1 + skew * i)", 0)
      .option("service", p.service, "mean time to serve one", 0.001)
      .option("walk", p.walk, "mean time to the next station, lookahead included", 0)
      .option("warm-up", p.warm_up, "time before which no visit counts", 0);
  return app.run(
      argc, argv,
      [&](pdes::Simulation& simulation) {
        require_end_after(p.warm_up, simulation);
        shares = closed::cumulative_shares(p);
        closed::add(simulation, p, shares);
      },
      [&](const pdes::Result& result, pdes::Summary& summary) {
        const auto theory = closed::mean_value_analysis(p);
        const auto visits = static_cast<double>(result.statistics.count_of("waiting"));
        if (result.reached > p.warm_up) summary.add("visits_per_time", visits / (result.reached - p.warm_up));
        summary.add("visits_per_time_theory", theory.visits);
        summary.add("waiting_theory", theory.waiting).add("found_theory", theory.found);
      });
}

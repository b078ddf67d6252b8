#include "models/jackson.h"

#include "models/warm_up.h"
#include "pdes/app.h"

int main(int argc, char** argv) {
  jackson::Parameters p;
  pdes::Options defaults;
  defaults.end = 5000;
  defaults.lookahead = 1;
  pdes::App app("jackson", "customers who queue at the stations of an open network");
  app.defaults(defaults)
      .option("stations", p.stations, "stations", 1)
      .option("servers", p.servers, "most servers of a station; they have 1, 2, ...", 1, Servers::kMost)
      .option("load", p.load, "share of the time that each server is busy", 0, 0.99)
      .option("arrivals", p.arrivals, "customers per unit of time from outside, at each station", 0.001)
      .option("again", p.again, "share of customers that go on to a station", 0, 0.99)
      .option("walk", p.walk, "mean time to the next station, lookahead included", 0)
      .option("warm-up", p.warm_up, "time before which nobody counts", 0);
  return app.run(
      argc, argv,
      [&](pdes::Simulation& simulation) {
        require_end_after(p.warm_up, simulation);
        jackson::add(simulation, p);
      },
      [&](const pdes::Result&, pdes::Summary& summary) {
        for (std::uint32_t c = 1; c <= std::min(p.servers, p.stations); ++c) {
          summary.add("waiting_" + std::to_string(c) + "_theory", jackson::mean_waiting(p, c));
          summary.add("found_" + std::to_string(c) + "_theory", jackson::mean_present(p, c));
        }
      });
}

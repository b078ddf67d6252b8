#include "models/colonies.h"

#include "pdes/app.h"

int main(int argc, char** argv) {
  colonies::Parameters p;
  pdes::Options defaults;
  defaults.end = 50;
  pdes::App app("colonies", "cells that divide and die, each of them an LP");
  app.defaults(defaults)
      .lookahead([&] { return p.signal; })
      .option("colonies", p.colonies, "colonies", 1)
      .option("founders", p.founders, "cells of each at the start", 1)
      .option("room", p.room, "cells that a colony has room for", 1, pdes::kMaxLps)
      .option("division", p.division, "rate at which a cell divides", 0.001, 1000)
      .option("death", p.death, "rate at which a cell dies", 0.001, 1000)
      .option("signal", p.signal, "time of a message between a colony and a cell", 0);
  return app.run(
      argc, argv, [&](pdes::Simulation& simulation) { colonies::add(simulation, p); },
      [&](const pdes::Result& result, pdes::Summary& summary) {
        summary.add("died_out", static_cast<double>(result.statistics.at("family").count) / p.colonies)
            .add("died_out_theory", colonies::extinction(p));
        if (p.division != p.death) summary.add("family_theory", colonies::family(p));
      });
}

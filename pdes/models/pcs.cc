#include "models/pcs.h"

#include "pdes/app.h"

int main(int argc, char** argv) {
  pcs::Parameters p;
  pdes::Options defaults;
  defaults.end = 500;
  defaults.lookahead = 1;
  pdes::App app("pcs", "portable telephones that move from cell to cell");
  app.defaults(defaults)
      .option("width", p.torus.width, "columns of cells", 1, Torus::kMax)
      .option("height", p.torus.height, "rows of cells", 1, Torus::kMax)
      .option("portables", p.portables, "portables of each cell, at the start")
      .option("channels", p.channels, "channels of each cell")
      .option("reserve", p.reserve, "further ones, for calls that come in from another cell")
      .option("next-call", p.next_call, "mean time between the attempts of a portable to call", 0.001)
      .option("call", p.call, "mean length of a call", 0)
      .option("move", p.move, "mean time that a portable stays in a cell", 0.001);
  return app.run(
      argc, argv, [&](pdes::Simulation& simulation) { pcs::add(simulation, p); },
      [](const pdes::Result& result, pdes::Summary& summary) {
        summary.add("blocking_probability", pcs::blocking_probability(result.statistics));
      });
}

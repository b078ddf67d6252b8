#include "models/airport.h"

#include "pdes/app.h"

int main(int argc, char** argv) {
  airport::Parameters p;
  pdes::Options defaults;
  defaults.end = 1000;
  defaults.lookahead = 0.5;
  pdes::App app("airport", "planes that queue for runways");
  app.defaults(defaults)
      .option("width", p.torus.width, "columns of airports", 1, Torus::kMax)
      .option("height", p.torus.height, "rows of airports", 1, Torus::kMax)
      .option("planes", p.planes, "planes of each airport")
      .option("ground", p.ground, "mean time on the ground", 0)
      .option("landing", p.landing, "mean time that a landing takes the runway", 0)
      .option("flight", p.flight, "mean time from airport to airport, lookahead included", 0);
  return app.run(argc, argv, [&](pdes::Simulation& simulation) { airport::add(simulation, p); });
}

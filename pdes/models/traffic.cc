#include "models/traffic.h"

#include "models/warm_up.h"
#include "pdes/app.h"

int main(int argc, char** argv) {
  traffic::Parameters p;
  pdes::Options defaults;
  defaults.end = 2000;
  defaults.lookahead = traffic::Segment::kHalf;
  pdes::App app("traffic", "cars on a ring road, cell by cell");
  app.defaults(defaults)
      .option("cells", p.cells, "cells of the road", 1, 1000000000)
      .option("segments", p.segments, "segments that it is cut into", 1)
      .option("cars", p.cars, "cars, at equal distances at the start")
      .option("max-speed", p.max_speed, "cells per step", 1)
      .option("dawdle", p.dawdle, "probability that a car slows down for no reason", 0, 1)
      .option("warm-up", p.warm_up, "steps that do not count", 0);
  return app.run(
      argc, argv,
      [&](pdes::Simulation& simulation) {
        require_end_after(p.warm_up, simulation);
        traffic::add(simulation, p);
      },
      [&](const pdes::Result& result, pdes::Summary& summary) {
        summary.add("flow", traffic::flow(p, result));
        if (const double theory = traffic::flow_theory(p); !std::isnan(theory)) summary.add("flow_theory", theory);
      });
}

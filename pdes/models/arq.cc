#include "models/arq.h"

#include "pdes/app.h"

int main(int argc, char** argv) {
  arq::Parameters p;
  pdes::Options defaults;
  defaults.end = 100'000;
  pdes::App app("arq", "packets that are sent again when no acknowledgement comes");
  app.defaults(defaults)
      .lookahead([&] { return p.wire; })
      .option("wires", p.wires, "wires, each with a sender and a receiver", 1, 10'000'000)
      .option("loss", p.loss, "share of packets, and of acknowledgements, that are lost", 0, 0.99)
      .option("wire", p.wire, "time on the wire, either way", 0)
      .option("patience", p.patience, "time after which a packet is sent again; more than two wires", 0)
      .option("precision", p.precision, "end when each sender's mean is known as well; 0: at the end", 0, 1)
      .option("batch", p.batch, "packets in a batch", 1);
  return app.run(
      argc, argv, [&](pdes::Simulation& simulation) { arq::add(simulation, p); },
      [&](const pdes::Result&, pdes::Summary& summary) {
        summary.add("mean_time_theory", p.time()).add("retrying_theory", p.retrying());
      });
}

#include "models/network.h"

#include "models/warm_up.h"
#include "pdes/app.h"

int main(int argc, char** argv) {
  using network::Kind, network::Traffic;
  network::Parameters p;
  network::AnyShape shape = make_shape(p);
  pdes::Options defaults;
  defaults.end = 2000;
  pdes::App app("network", "packets in a torus or dragonfly of routers that give credits");
  app.defaults(defaults)
      .lookahead([&] { return p.transfer + p.wire; })
      .choice("shape", p.kind, {{"torus", Kind::torus}, {"dragonfly", Kind::dragonfly}}, "of the network")
      .option("width", p.torus.width, "columns of a torus", 1, Torus::kMax)
      .option("height", p.torus.height, "rows of a torus", 1, Torus::kMax)
      .option("links", p.links, "h, links of a dragonfly's router to other groups: 4h^4+2h^2 hosts", 1, 100)
      .choice("traffic", p.traffic, {{"uniform", Traffic::uniform}, {"hard", Traffic::hard}}, "to any host, or all one way")
      .option("load", p.load, "packets of a host in the time that one takes on a link", 1e-6)
      .option("packets", p.packets, "of each host (0: no end)")
      .option("transfer", p.transfer, "time that a packet takes on a link", 0.001)
      .option("wire", p.wire, "time until what was sent arrives", 0)
      .option("buffers", p.buffers, "buffers for packets, of each port and lane", 1)
      .option("backlog", p.backlog, "packets of a host that wait before it is refused more")
      .option("warm-up", p.warm_up, "time before which throughput does not count", 0);
  return app.run(
      argc, argv,
      [&](pdes::Simulation& simulation) {
        require_end_after(p.warm_up, simulation);
        shape = make_shape(p);
        std::visit([&](const auto& chosen) { network::add(simulation, p, chosen); }, shape);
      },
      [&](const pdes::Result& result, pdes::Summary& summary) {
        std::visit(
            [&](const auto& chosen) {
              const bool uniform = p.traffic == Traffic::uniform;
              summary.add("throughput", network::throughput(p, result, chosen.routers() * chosen.hosts()));
              summary.add("throughput_bound", uniform ? chosen.most_throughput() : chosen.most_hard_throughput());
              if (uniform) summary.add("latency_without_load", chosen.mean_hops() * (p.transfer + p.wire));
            },
            shape);
      });
}

#include "models/phold_variants.h"

namespace phold {

void declare(pdes::App& app, Parameters& p) {
  pdes::Options defaults;
  defaults.end = 80;
  defaults.lookahead = 0.1;
  app.defaults(defaults)
      .option("lps", p.lps, "logical processes", 1)
      .option("events-per-lp", p.events_per_lp, "events that each LP starts with", 1)
      .option("remote", p.remote, "share of events that go to any LP, not to their own", 0, 1)
      .option("mean", p.mean, "mean delay of an event, lookahead included", 0)
      .option("payload", p.payload, "bytes of an event: 8, 16, 32, ... 1024, or a mix such as 8:0.9,1024:0.1")
      .option("imbalance", p.imbalance, "share of remote events that go to the first eighth of the LPs", 0, 1)
      .option("hot", p.hot, "an eighth of the LPs gets so many times as many remote events, and moves round", 1)
      .option("hot-turn", p.hot_turn, "virtual time in which it moves round all LPs once", 1e-9)
      .option("state", p.state, "bytes of state of each LP, of which each event writes a cache line", 0, 1u << 30)
      .choice("distribution", p.distribution,
              {{"exponential", Distribution::exponential},
               {"uniform", Distribution::uniform},
               {"bimodal", Distribution::bimodal},
               {"ties", Distribution::ties},
               {"pareto", Distribution::pareto}},
              "of the delay beyond the lookahead");
}

void check(const Parameters& p, const pdes::Options& options) {
  if (p.mean < options.lookahead) throw pdes::Error("the mean delay must not be below the lookahead");
}

bool is_varied(const Parameters& p) {
  const Parameters plain;
  return p.payload != plain.payload || p.imbalance != plain.imbalance || p.hot != plain.hot || p.state != plain.state ||
         p.distribution != plain.distribution;
}

}  // namespace phold

// PHOLD (Fujimoto 1990): every event sends one other, to any LP with probability `remote`, otherwise to its own LP.
// The number of pending events stays constant.
#include "models/phold_variants.h"

struct Hop {
  std::uint64_t hops;  // of this event so far
};

class Node {
 public:
  using Context = pdes::Context<Hop>;
  explicit Node(const phold::Parameters& p) : p_(p) {}

  void start(Context& context) {
    for (std::uint32_t i = 0; i < p_.events_per_lp; ++i) context.send_self(delay(context), Hop{0});
  }
  void on(Context& context, const Hop& event) {
    auto random = context.random();
    const bool remote = random.chance(p_.remote);
    const auto to = remote ? static_cast<pdes::LpId>(random.integer(context.lp_count())) : context.id();
    context.send(to, delay(context), Hop{event.hops + 1});
  }
  void serialize(auto&) {}  // it has no state

 private:
  // Events for the LP itself include the lookahead too, so the mean delay is `mean` whatever the lookahead.
  pdes::Time delay(Context& context) const {
    return context.lookahead() + context.random().exponential(p_.mean - context.lookahead());
  }
  const phold::Parameters& p_;
};

int main(int argc, char** argv) {
  phold::Parameters parameters;
  pdes::App app("phold", "the standard benchmark of parallel simulation");
  phold::declare(app, parameters);
  return app.run(argc, argv, [&](pdes::Simulation& simulation) {
    phold::check(parameters, simulation.options());
    if (phold::is_varied(parameters)) return phold::add_varied(simulation, parameters);
    simulation.add<Node>(parameters.lps, [&](pdes::LpId) { return Node(parameters); });
  });
}

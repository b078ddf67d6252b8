// Jackson: an open network of stations.  Customers come from outside, queue for one of a station's servers, and then go
// home or to any station.  docs/pdes-library.md has the theory.
#pragma once

#include <cstdint>
#include <string>

#include "models/servers.h"

namespace jackson {

struct Parameters {
  std::uint32_t stations = 200;
  std::uint32_t servers = 3;  // at most; stations have 1, 2, ... servers, 1, 2, ... again
  double load = 0.8;          // share of the time that each server is busy
  double arrivals = 0.25;     // customers per unit of time that come to each station from outside
  double again = 0.5;         // share of customers that go on to a station
  double walk = 2;            // mean time to the next station, lookahead included
  double warm_up = 500;       // nobody who arrives earlier counts

  std::uint32_t servers_of(pdes::LpId station) const { return 1 + station % servers; }
  double flow() const { return arrivals / (1 - again); }  // through each station
  double service(std::uint32_t of_servers) const { return load * of_servers / flow(); }
};

struct Arrival {
  bool from_outside;
};
struct Departure {};

class Station {
 public:
  using Context = pdes::Context<Arrival, Departure>;
  Station(const Parameters& p, std::uint32_t servers) : p_(p), servers_(servers), kind_(servers) {}

  void start(Context& context) { expect_somebody(context); }

  void on(Context& context, const Arrival& customer) {
    if (customer.from_outside) expect_somebody(context);
    const pdes::Time service = context.random().exponential(p_.service(kind_));
    const pdes::Time waiting = servers_.take(context.now(), service) - context.now();
    if (context.now() >= p_.warm_up) {
      waiting_.add(waiting);
      found_.add(present_);
    }
    ++present_;
    context.send_self(waiting + service, Departure{});
  }

  void on(Context& context, const Departure&) {
    auto random = context.random();
    --present_;
    if (!random.chance(p_.again)) return;
    const auto next = static_cast<pdes::LpId>(random.integer(context.lp_count()));
    context.send(next, context.lookahead() + random.exponential(p_.walk - context.lookahead()), Arrival{false});
  }

  void report(pdes::Report& report) const {
    report.tally("waiting_" + std::to_string(kind_), waiting_);
    report.tally("found_" + std::to_string(kind_), found_);
    report.count("present", present_);
  }

  template <class A>
  void serialize(A& archive) {
    archive(servers_, present_, waiting_, found_);
  }

 private:
  void expect_somebody(Context& context) { context.send_self(context.random().exponential(1 / p_.arrivals), Arrival{true}); }

  const Parameters& p_;
  Servers servers_;
  std::uint32_t kind_;         // the number of servers
  std::uint32_t present_ = 0;  // customers
  pdes::Tally waiting_;        // of each customer, for a server
  pdes::Tally found_;          // customers present, by each who arrives
};

// Erlang's formula C: the probability that all servers are busy, load being the share of the time that each is.
inline double erlang_c(std::uint32_t servers, double load) {
  double blocked = 1;  // formula B, server by server
  for (std::uint32_t c = 1; c <= servers; ++c) blocked = servers * load * blocked / (c + servers * load * blocked);
  return blocked / (1 - load * (1 - blocked));
}
inline double mean_waiting(const Parameters& p, std::uint32_t servers) {
  return erlang_c(servers, p.load) * p.service(servers) / (servers * (1 - p.load));
}
inline double mean_present(const Parameters& p, std::uint32_t servers) {
  return p.flow() * mean_waiting(p, servers) + servers * p.load;
}

// Keeps a reference to parameters.
inline void add(pdes::Simulation& simulation, const Parameters& p) {
  if (p.walk < simulation.options().lookahead) throw pdes::Error("--walk must not be below the lookahead");
  simulation.add<Station>(p.stations, [&p](pdes::LpId id) { return Station(p, p.servers_of(id)); });
}

}  // namespace jackson

// Closed: a network of stations with one server each, through which always the same customers go round.  Some stations
// are visited more often than others.  docs/pdes-library.md has the theory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "models/servers.h"

namespace closed {

struct Parameters {
  std::uint32_t stations = 100;
  std::uint32_t customers = 500;
  double skew = 0.1;     // station i is visited in proportion to 1 / (1 + skew * i)
  double service = 1;    // mean time, of all stations
  double walk = 20;      // mean time to the next station, lookahead included
  double warm_up = 500;  // no visit that begins earlier counts
};

// Shares of visits, added up: station i gets those between the sum before it and its own.
inline std::vector<double> cumulative_shares(const Parameters& p) {
  std::vector<double> sums(p.stations);
  double sum = 0;
  for (pdes::LpId i = 0; i < p.stations; ++i) sums[i] = sum += 1 / (1 + p.skew * i);
  for (double& each : sums) each /= sum;
  return sums;
}

struct Arrival {};
struct Departure {};

class Station {
 public:
  using Context = pdes::Context<Arrival, Departure>;
  Station(const Parameters& p, const std::vector<double>& shares) : p_(p), shares_(shares) {}

  void start(Context& context) {
    const std::uint32_t here = p_.customers / p_.stations + (context.id() < p_.customers % p_.stations ? 1 : 0);
    for (std::uint32_t i = 0; i < here; ++i) context.send_self(0, Arrival{});
  }

  void on(Context& context, const Arrival&) {
    const pdes::Time service = context.random().exponential(p_.service);
    const pdes::Time waiting = server_.take(context.now(), service) - context.now();
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
    const auto next = std::upper_bound(shares_.begin(), shares_.end() - 1, random.uniform()) - shares_.begin();
    const pdes::Time walk = context.lookahead() + random.exponential(p_.walk - context.lookahead());
    context.send(static_cast<pdes::LpId>(next), walk, Arrival{});
  }

  void report(pdes::Report& report) const {
    report.tally("waiting", waiting_);
    report.tally("found", found_);
    report.count("present", present_);
  }

  template <class A>
  void serialize(A& archive) {
    archive(server_, present_, waiting_, found_);
  }

 private:
  const Parameters& p_;
  const std::vector<double>& shares_;
  Servers server_{1};
  std::uint32_t present_ = 0;
  pdes::Tally waiting_;  // of each visit, for the server
  pdes::Tally found_;    // customers present, by each who arrives
};

struct Steady {
  double visits;   // per unit of time, of all stations
  double waiting;  // mean of all visits
  double found;    // customers present on arrival, mean of all visits
};

// Mean value analysis (Reiser, Lavenberg 1980), customer by customer: who arrives finds what there is without him.
inline Steady mean_value_analysis(const Parameters& p) {
  std::vector<double> share = cumulative_shares(p), queue(p.stations);
  for (std::size_t i = share.size(); --i > 0;) share[i] -= share[i - 1];
  Steady steady{};
  for (std::uint32_t customers = 1; customers <= p.customers; ++customers) {
    steady.found = 0;
    for (std::size_t i = 0; i < queue.size(); ++i) steady.found += share[i] * queue[i];
    steady.waiting = p.service * steady.found;
    steady.visits = customers / (p.walk + p.service + steady.waiting);
    for (std::size_t i = 0; i < queue.size(); ++i) queue[i] = steady.visits * share[i] * p.service * (1 + queue[i]);
  }
  return steady;
}

// Keeps references to both.
inline void add(pdes::Simulation& simulation, const Parameters& p, const std::vector<double>& shares) {
  if (p.walk < simulation.options().lookahead) throw pdes::Error("--walk must not be below the lookahead");
  simulation.add<Station>(p.stations, [&](pdes::LpId) { return Station(p, shares); });
}

}  // namespace closed

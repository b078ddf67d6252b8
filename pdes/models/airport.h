// Airport: planes fly between neighbouring airports of a torus; each airport has one runway, on which they land in the
// order of their arrival.  docs/pdes-models.md says how this differs from the published model.
#pragma once

#include <algorithm>
#include <cstdint>

#include "models/torus.h"

namespace airport {

struct Parameters {
  Torus torus{32, 32};
  std::uint32_t planes = 50;  // at each airport, at the start
  // Means of exponential times, except for the flight, which is the lookahead plus an exponential time.
  double ground = 30, landing = 10, flight = 1;
};

// What a plane carries along.
struct Plane {
  double waiting;          // for the runway on which it lands
  std::uint64_t landings;  // so far
};
struct Departure {
  Plane plane;
};
struct Arrival {
  Plane plane;
};  // in the sky above
struct Landing {
  Plane plane;
};  // over: it has left the runway

class Airport {
 public:
  using Context = pdes::Context<Departure, Arrival, Landing>;
  explicit Airport(const Parameters& p) : p_(p), on_ground_(p.planes) {}

  void start(Context& context) {
    for (std::uint32_t i = 0; i < p_.planes; ++i) stay(context, Plane{});
  }

  void on(Context& context, const Departure& event) {
    auto random = context.random();
    --on_ground_;
    ++departures_;
    const auto flight = context.lookahead() + random.exponential(p_.flight - context.lookahead());
    context.send(p_.torus.neighbour(context.id(), random.integer(4)), flight, Arrival{event.plane});
  }

  void on(Context& context, const Arrival& event) {
    ++in_sky_;
    runway_free_ = std::max(runway_free_, context.now());
    const double waiting = runway_free_ - context.now();
    const double service = context.random().exponential(p_.landing);
    runway_free_ += service;
    context.send_self(waiting + service, Landing{{waiting, event.plane.landings + 1}});
  }

  void on(Context& context, const Landing& event) {
    --in_sky_;
    ++on_ground_;
    waiting_.add(event.plane.waiting);
    stay(context, event.plane);
  }

  void serialize(auto& archive) { archive(on_ground_, in_sky_, departures_, runway_free_, waiting_); }

  void report(pdes::Report& report) const {
    report.count("departures", departures_);
    report.count("on_ground", on_ground_);
    report.count("in_sky", in_sky_);
    report.tally("waiting", waiting_);
    // The published measure: the average over airports of each one's average.
    pdes::Tally average;
    if (waiting_.count() > 0) average.add(waiting_.sum() / static_cast<double>(waiting_.count()));
    report.tally("waiting_by_airport", average);
  }

 private:
  void stay(Context& context, const Plane& plane) {
    context.send_self(context.random().exponential(p_.ground), Departure{plane});
  }

  const Parameters& p_;
  std::int64_t on_ground_, in_sky_ = 0, departures_ = 0;
  pdes::Time runway_free_ = 0;
  pdes::Tally waiting_;  // one observation for each landing
};

// Keeps a reference to parameters.
inline void add(pdes::Simulation& simulation, const Parameters& p) {
  if (p.flight < simulation.options().lookahead) throw pdes::Error("--flight must not be below the lookahead");
  simulation.add<Airport>(p.torus.size(), [&p](pdes::LpId) { return Airport(p); });
  simulation.set_neighbours(p.torus);
}

}  // namespace airport

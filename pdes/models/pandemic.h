// Pandemic: an illness spreads in cities, among all who are there, and between them with those who fly.  Infection and
// recovery are a Markov process in each city.  docs/pdes-library.md has the theory.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>

#include "models/graph.h"
#include "models/number_file.h"
#include "models/sir.h"
#include "models/torus.h"

namespace pandemic {

struct Parameters {
  Torus torus{16, 16};            // of cities, with routes to all four neighbours
  std::string routes{};           // a file of them, instead
  std::uint32_t residents = 500;  // of each city, at the start
  std::uint32_t passengers = 10;  // of each plane on the torus
  std::uint32_t sources = 1;      // cities with infected residents at the start
  std::uint32_t infected = 5;     // in each of these
  double contacts = 0.5;          // that each infected has per unit of time, with anybody in the city
  double recovery = 4;            // mean time that one is infectious
  double every = 1;               // time between two planes of a route
  double flight = 0.25;           // time from city to city
};

inline Graph make_routes(const Parameters& p) {
  std::vector<Edge> routes;
  if (p.routes.empty()) {
    for (pdes::LpId id = 0; id < p.torus.size(); ++id)
      for (std::uint64_t to = 0; to < 4; ++to) routes.push_back({id, p.torus.neighbour(id, to), p.passengers});
    return Graph(p.torus.size(), routes, Graph::Ways::one);
  }
  const std::vector<Column> columns{{"from", pdes::kMaxLps - 1}, {"to", pdes::kMaxLps - 1}, {"passengers", 1000000}};
  read_rows(p.routes, columns, Rest::refused, [&](const auto& row) {
    if (row[0] == row[1]) throw pdes::Error("a route from a city to itself");
    routes.push_back({static_cast<pdes::LpId>(row[0]), static_cast<pdes::LpId>(row[1]), static_cast<std::uint32_t>(row[2])});
  });
  if (routes.empty()) throw pdes::Error(p.routes + ": has no routes");
  return Graph(nodes_of(routes), routes, Graph::Ways::one);
}

struct Departure {
  std::uint32_t route;  // of the city's
};
struct Landing {
  sir::People aboard;
};
// Somebody is infected or recovers: as planned, unless the city has made another plan since.
struct Change {
  std::uint64_t plan;
};

class City {
 public:
  using Context = pdes::Context<Departure, Landing, Change>;
  City(const Parameters& p, const Graph& routes, pdes::LpId id)
      : p_(p), routes_(routes), is_source_(sir::is_chosen(id, p.sources, routes.size())) {
    people_.infected = is_source_ ? std::min(p.infected, p.residents) : 0;
    people_.susceptible = p.residents - people_.infected;
  }

  // The planes of a city leave at equal distances in time, the last of them at a multiple of `every`.
  void start(Context& context) {
    const auto routes = static_cast<std::uint32_t>(routes_.links(context.id()).size());
    for (std::uint32_t i = 0; i < routes; ++i) context.send_self(p_.every * (i + 1) / routes, Departure{i});
    plan(context);
  }

  void on(Context& context, const Departure& plane) {
    const Graph::Link& route = routes_.links(context.id())[plane.route];
    sir::People aboard;
    for (std::uint32_t seat = 0; seat < route.weight && people_.sum() > 0; ++seat) board_anybody(context, aboard);
    left_ += static_cast<std::int64_t>(aboard.sum());
    ++flights_;
    context.send(route.to, p_.flight, Landing{aboard});
    context.send_self(p_.every, plane);
    plan(context);
  }

  // Nobody is infected aboard, but the ill recover there as they would have in a city.
  void on(Context& context, const Landing& plane) {
    auto random = context.random();
    sir::People landed = plane.aboard;
    for (std::uint64_t i = plane.aboard.infected; i > 0; --i)
      if (random.exponential(p_.recovery) < p_.flight) landed.recover_one();
    people_ += landed;
    left_ -= static_cast<std::int64_t>(landed.sum());
    plan(context);
  }

  void on(Context& context, const Change& due) {
    if (due.plan != plan_) return;
    if (context.random().chance(infections() / (infections() + recoveries()))) {
      people_.infect_one();
      ++infections_;
    } else {
      people_.recover_one();
    }
    plan(context);
  }

  void report(pdes::Report& report) const {
    people_.report(report);
    report.count("aboard", left_);
    report.count("infected_away", is_source_ ? 0 : static_cast<std::int64_t>(people_.infected));
    report.count("infections", infections_);
    report.count("flights", flights_);
  }

  template <class A>
  void serialize(A& archive) {
    archive(people_, plan_, left_, infections_, flights_);
  }

 private:
  void board_anybody(Context& context, sir::People& aboard) {
    const std::uint64_t who = context.random().integer(people_.sum());
    if (who < people_.susceptible) move_one(people_.susceptible, aboard.susceptible);
    else if (who < people_.susceptible + people_.infected) move_one(people_.infected, aboard.infected);
    else move_one(people_.recovered, aboard.recovered);
  }
  static void move_one(std::uint64_t& from, std::uint64_t& to) {
    --from;
    ++to;
  }

  // Per unit of time.
  double infections() const {
    const auto infected = static_cast<double>(people_.infected), susceptible = static_cast<double>(people_.susceptible);
    return infected == 0 ? 0 : p_.contacts * infected * susceptible / static_cast<double>(people_.sum());
  }
  double recoveries() const { return static_cast<double>(people_.infected) / p_.recovery; }

  // To be called whenever people have changed: what was planned before is void.  Exponential times have no memory.
  void plan(Context& context) {
    ++plan_;
    const double rate = infections() + recoveries();
    if (rate > 0) context.send_self(context.random().exponential(1 / rate), Change{plan_});
  }

  const Parameters& p_;
  const Graph& routes_;
  bool is_source_;
  sir::People people_;
  std::uint64_t plan_ = 0;
  std::int64_t left_ = 0;  // people who left by plane, less those who came
  std::int64_t infections_ = 0, flights_ = 0;
};

// The share of people who ever get it if all of them mix: z = 1 - (1 - start) exp(-contacts * recovery * z).
inline double final_size(const Parameters& p, double start) {
  double z = 1;
  for (int i = 0; i < 10000; ++i) z = 1 - (1 - start) * std::exp(-p.contacts * p.recovery * z);
  return z;
}

// Keeps references to both.
inline void add(pdes::Simulation& simulation, const Parameters& p, const Graph& routes) {
  if (p.flight < simulation.options().lookahead) throw pdes::Error("--flight must not be below the lookahead");
  simulation.add<City>(routes.size(), [&](pdes::LpId id) { return City(p, routes, id); });
  simulation.set_neighbours(std::cref(routes));
}

}  // namespace pandemic

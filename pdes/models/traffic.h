// Traffic: cars on a ring road, cell by cell (Nagel, Schreckenberg 1992).  The road is cut into segments; each sees what
// is behind its end only after the next one has told it.  docs/pdes-library.md has the theory.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pdes/pdes.h"

namespace traffic {

struct Parameters {
  std::uint32_t cells = 10000;   // of the road
  std::uint32_t segments = 100;  // that it is cut into
  std::uint32_t cars = 2000;     // at equal distances at the start, and at rest
  std::uint32_t max_speed = 5;   // cells per step
  double dawdle = 0.25;          // probability that a car slows down for no reason
  double warm_up = 200;          // steps that do not count

  std::uint32_t first_cell(std::uint64_t segment) const { return static_cast<std::uint32_t>(segment * cells / segments); }
  std::uint32_t cell_of_car(std::uint64_t car) const { return static_cast<std::uint32_t>(car * cells / cars); }
  // That starts in this cell or behind it.
  std::uint32_t first_car(std::uint64_t cell) const { return static_cast<std::uint32_t>((cell * cars + cells - 1) / cells); }
};

// A step takes one unit of time: at its begin each segment looks at its first car for the one behind it; half a step
// later all move, and cars that leave are in the next segment when the next step begins.
struct Look {};
struct Ahead {
  std::uint32_t cells;  // free ones, from the begin of the next segment to its first car
};
struct Car {
  std::uint32_t cell, speed;  // cell of its segment
};

class Segment {
 public:
  using Context = pdes::Context<Look, Ahead, Car>;
  static constexpr pdes::Time kHalf = 0.5;

  Segment(const Parameters& p, pdes::LpId id) : p_(p), first_(p.first_cell(id)), length_(p.first_cell(id + 1) - first_) {
    for (std::uint32_t car = p.first_car(first_); car < p.cars && p.cell_of_car(car) < first_ + length_; ++car)
      cars_.push_back({p.cell_of_car(car) - first_, 0});
  }

  void start(Context& context) { context.send_self(0, Look{}, kAfterCars); }

  // Cars of the segment before that come with this step have come already.
  void on(Context& context, const Look&) {
    const std::uint32_t free = cars_.empty() ? length_ : cars_.front().cell;
    context.send((context.id() + p_.segments - 1) % p_.segments, kHalf, Ahead{free});
    context.send_self(2 * kHalf, Look{}, kAfterCars);
  }

  void on(Context& context, const Ahead& ahead) {
    auto random = context.random();
    const bool counts = context.now() >= p_.warm_up;
    for (std::size_t i = 0; i < cars_.size(); ++i) {
      const std::uint32_t next = i + 1 < cars_.size() ? cars_[i + 1].cell : length_ + ahead.cells;
      Car& car = cars_[i];
      car.speed = std::min({car.speed + 1, p_.max_speed, next - car.cell - 1});
      if (car.speed > 0 && random.chance(p_.dawdle)) --car.speed;
      if (counts) {
        moved_ += car.speed;
        stopped_ += car.speed == 0 ? 1 : 0;
      }
    }
    for (Car& car : cars_) car.cell += car.speed;
    if (!cars_.empty() && cars_.back().cell >= length_) leave(context);
  }

  void on(Context&, const Car& car) { cars_.insert(cars_.begin(), car); }

  void report(pdes::Report& report) const {
    report.count("cars", static_cast<std::int64_t>(cars_.size()));
    report.count("cells_moved", moved_);
    report.count("stops", stopped_);
  }

  template <class A>
  void serialize(A& archive) {
    archive(cars_, moved_, stopped_);
  }

 private:
  static constexpr pdes::Priority kAfterCars = 1;

  // At most one in a step, since a car moves no further than where the next one was.
  void leave(Context& context) {
    const Car car{cars_.back().cell - length_, cars_.back().speed};
    cars_.pop_back();
    context.send((context.id() + 1) % p_.segments, kHalf, car);
  }

  const Parameters& p_;
  std::uint32_t first_, length_;          // in cells
  std::vector<Car> cars_;                 // in the order of their cells
  std::int64_t moved_ = 0, stopped_ = 0;  // cells; cars that stood still for a step
};

// Cars per cell and step.  Exact for max_speed 1 (Schreckenberg et al. 1995) and without dawdling (a free car has its full
// speed; otherwise each free cell lets one car in); for all else there is no formula, and this is not a number.
inline double flow_theory(const Parameters& p) {
  const double density = static_cast<double>(p.cars) / p.cells;
  if (p.max_speed == 1) return (1 - std::sqrt(1 - 4 * (1 - p.dawdle) * density * (1 - density))) / 2;
  return p.dawdle == 0 ? std::min(density * p.max_speed, 1 - density) : std::nan("");
}

inline double flow(const Parameters& p, const pdes::Result& result) {
  const double steps = result.reached - p.warm_up;
  return steps > 0 ? static_cast<double>(result.statistics.count_of("cells_moved")) / steps / p.cells : 0;
}

// Keeps a reference to parameters.
inline void add(pdes::Simulation& simulation, const Parameters& p) {
  if (p.cars > p.cells) throw pdes::Error("--cars must not be above --cells");
  if (p.cells / p.segments < p.max_speed) throw pdes::Error("a segment must have at least --max-speed cells");
  if (Segment::kHalf < simulation.options().lookahead) throw pdes::Error("the lookahead must not be above half a step");
  simulation.add<Segment>(p.segments, [&p](pdes::LpId id) { return Segment(p, id); });
  simulation.set_neighbours([n = p.segments](pdes::LpId id, const auto& to) {
    to((id + 1) % n);
    to((id + n - 1) % n);
  });
}

}  // namespace traffic

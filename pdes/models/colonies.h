// Colonies: cells that divide and die.  Each cell is an LP, which is made when another one divides and ends when it dies.
// docs/pdes-library.md has the theory.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "pdes/pdes.h"

namespace colonies {

struct Parameters {
  std::uint32_t colonies = 1000;
  std::uint32_t founders = 1;  // cells of each at the start
  std::uint32_t room = 100;    // for so many cells at a time
  double division = 1.2;       // rate, of each cell
  double death = 1;            // likewise
  double signal = 0.1;         // time of a message between a colony and a cell

  double ratio() const { return division / death; }  // divisions of a cell in its life
};

struct Born {};
struct Next {};  // what a cell does next
struct Divided {};
struct Died {
  pdes::LpId cell;
};
using Context = pdes::Context<pdes::Makes<Born>, Next, Divided, Died>;

class Cell {
 public:
  using Context = colonies::Context;
  Cell(const Parameters& p, pdes::LpId colony) : p_(p), colony_(colony) {}

  void on(Context& context, const Born&) {
    born_ = context.now();
    wait(context);
  }
  void on(Context& context, const Next&) {
    if (context.random().chance(p_.division / (p_.division + p_.death))) {
      ++divisions_;
      context.send(colony_, p_.signal, Divided{});
      wait(context);
    } else {
      life_.add(context.now() - born_);
      context.send(colony_, p_.signal, Died{context.id()});
      context.vacate();
    }
  }

  void report(pdes::Report& report) const {
    report.tally("life", life_);
    report.count("divisions", divisions_);
  }
  template <class A>
  void serialize(A& archive) {
    archive(born_, divisions_, life_);
  }

 private:
  void wait(Context& context) { context.send_self(context.random().exponential(1 / (p_.division + p_.death)), Next{}); }

  const Parameters& p_;
  const pdes::LpId colony_;
  pdes::Time born_ = 0;
  std::uint32_t divisions_ = 0;
  pdes::Tally life_;  // one observation, if it has died
};

// Knows which places of its room are vacant; the ids after its own.
class Colony {
 public:
  using Context = colonies::Context;
  Colony(const Parameters& p, pdes::LpId id) : p_(p), vacancies_(id + 1, p.room) {}

  void start(Context& context) {
    for (std::uint32_t i = 0; i < p_.founders; ++i) add_cell(context);
  }
  void on(Context& context, const Divided&) { add_cell(context); }
  void on(Context& context, const Died& died) {
    vacancies_.give_back(died.cell);
    if (--cells_ == 0) died_out_.add(context.now());
  }

  void report(pdes::Report& report) const {
    const bool died_out = cells_ == 0 && refused_ == 0;
    report.tally("died_out_at", died_out ? died_out_ : pdes::Tally());
    pdes::Tally family;
    if (died_out) family.add(ever_);
    report.tally("family", family);
    report.count("cells", cells_);
    report.count("full", refused_ > 0);
    report.count("refused", static_cast<std::int64_t>(refused_));
  }
  template <class A>
  void serialize(A& archive) {
    archive(vacancies_, cells_, ever_, refused_, died_out_);
  }

 private:
  void add_cell(Context& context) {
    const auto place = vacancies_.take();
    if (!place) {
      ++refused_;
      return;
    }
    ++cells_;
    ++ever_;
    context.send(*place, p_.signal, Born{});
  }

  const Parameters& p_;
  pdes::Vacancies vacancies_;
  std::uint32_t cells_ = 0, ever_ = 0;
  std::uint64_t refused_ = 0;  // births for which there was no room
  pdes::Tally died_out_;
};

// Of colonies without bounds: the share of those that die out, and the cells that one which does ever has, on average.
inline double extinction(const Parameters& p) { return std::pow(std::min(1.0, 1 / p.ratio()), p.founders); }
inline double family(const Parameters& p) { return p.founders / (1 - std::min(p.ratio(), 1 / p.ratio())); }

// Keeps a reference.
inline void add(pdes::Simulation& simulation, const Parameters& p) {
  if (p.signal < simulation.options().lookahead) throw pdes::Error("--signal must not be below the lookahead");
  if (std::uint64_t{p.colonies} * (p.room + 1) > pdes::kMaxLps)
    throw pdes::Error("--colonies have more --room than there can be LPs, " + std::to_string(pdes::kMaxLps));
  const auto colony_of = [&p](pdes::LpId id) { return id - id % (p.room + 1); };
  for (std::uint32_t i = 0; i < p.colonies; ++i) {
    simulation.add<Colony>(1, [&p](pdes::LpId id) { return Colony(p, id); });
    simulation.add_vacant<Cell>(p.room, [&p, colony_of](pdes::LpId id) { return Cell(p, colony_of(id)); });
  }
  simulation.set_neighbours([&p, colony_of](pdes::LpId id, const auto& to) {
    const pdes::LpId colony = colony_of(id);
    if (id != colony) return to(colony);
    for (pdes::LpId cell = id + 1; cell <= id + p.room; ++cell) to(cell);
  });
}

}  // namespace colonies

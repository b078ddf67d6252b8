// LPs that come and go.  An id is an address, and the number of ids is fixed; at those of Simulation::add_vacant nobody is at
// first.  A model lists the type of the event that makes an LP there, and sends and handles the type itself:
//
//   using Context = pdes::Context<pdes::Makes<Born>, Divide>;
//   context.send(id, 0.1, Born{});  // when its time comes, an LP is made at that id, and executes it
//   context.vacate();               // this LP ends with the event that it executes, and the id is vacant again
//
// 1. Whatever is sent to an id is for whoever is there when its time comes, except that events which an LP has sent to itself
//    end with it, timers too: they are executed by doing nothing.
// 2. An id keeps its random numbers and its sequence from one LP to the next, and Context::stream gives each of them streams
//    of its own, so no two of them are alike.
// 3. What an LP reports at its end is kept; its memory is given back.
#pragma once

#include <optional>
#include <vector>

#include "pdes/event.h"

namespace pdes {

template <class E>
struct Makes {
  E event;
};

// What becomes of other LPs' events for an id where nobody is, unless they make an LP.
enum class Undelivered : bool {
  refused,  // the run ends
  dropped,  // and counted: Activity::undelivered
};

// Ids that an LP may fill, as a member of it.  Which of them are vacant must not depend on threads, so one LP decides, and is
// told by an event when one that it has filled is vacant again.
class Vacancies {
 public:
  Vacancies() = default;
  Vacancies(LpId first, LpId count) noexcept : fresh_(first), end_(first + count) {}

  // One that is vacant, if there is any: what was given back last comes first.
  std::optional<LpId> take() {
    if (given_back_.empty()) return fresh_ == end_ ? std::optional<LpId>() : fresh_++;
    const LpId id = given_back_.back();
    given_back_.pop_back();
    return id;
  }
  void give_back(LpId id) { given_back_.push_back(id); }

  template <class A>
  void serialize(A& archive) {
    archive(fresh_, end_, given_back_);
  }

 private:
  LpId fresh_ = 0, end_ = 0;  // the ids that have never been taken
  std::vector<LpId> given_back_;
};

}  // namespace pdes

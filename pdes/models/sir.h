// What models of an illness share: how many people are in which stage of it.
#pragma once

#include <cstdint>

#include "pdes/pdes.h"

namespace sir {

// Who recovers stays immune.
struct People {
  std::uint64_t susceptible = 0, infected = 0, recovered = 0;

  std::uint64_t sum() const noexcept { return susceptible + infected + recovered; }
  void infect_one() noexcept {
    --susceptible;
    ++infected;
  }
  void recover_one() noexcept {
    --infected;
    ++recovered;
  }
  void operator+=(const People& others) noexcept {
    susceptible += others.susceptible;
    infected += others.infected;
    recovered += others.recovered;
  }
  void report(pdes::Report& report) const {
    report.count("susceptible", static_cast<std::int64_t>(susceptible));
    report.count("infected", static_cast<std::int64_t>(infected));
    report.count("recovered", static_cast<std::int64_t>(recovered));
  }
};

// Where it begins: true for `chosen` of `all` ids, spread evenly, the first among them.
constexpr bool is_chosen(pdes::LpId id, std::uint32_t chosen, std::uint32_t all) noexcept {
  return std::uint64_t{id} * chosen % all < chosen;
}

}  // namespace sir

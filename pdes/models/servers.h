// The servers of a station, first come first served: what a customer will wait for is known on arrival.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "pdes/pdes.h"

class Servers {
 public:
  static constexpr std::uint32_t kMost = 16;
  explicit Servers(std::uint32_t count) : count_(count) {}

  // A customer arrives now and needs a server for so long.  Returns when that begins.
  pdes::Time take(pdes::Time now, pdes::Time service) noexcept {
    pdes::Time& free = *std::min_element(free_.begin(), free_.begin() + count_);
    const pdes::Time begins = std::max(free, now);
    free = begins + service;
    return begins;
  }

 private:
  std::array<pdes::Time, kMost> free_{};  // when each server will be
  std::uint32_t count_;
};

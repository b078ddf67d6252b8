// A grid of LPs whose edges meet: each LP has a neighbour in the west, the east, the north and the south.
#pragma once

#include <cstdint>
#include <functional>

#include "pdes/pdes.h"

struct Torus {
  static constexpr std::uint32_t kMax = 8192;  // of width and height; together they fit an LpId
  std::uint32_t width, height;

  pdes::LpId size() const noexcept { return width * height; }

  // direction: 0 west, 1 east, 2 north, 3 south.
  pdes::LpId neighbour(pdes::LpId id, std::uint64_t direction) const noexcept {
    const std::uint32_t x = id % width, y = id / width;
    switch (direction) {
      case 0: return id - x + (x + width - 1) % width;
      case 1: return id - x + (x + 1) % width;
      case 2: return (y + height - 1) % height * width + x;
      default: return (y + 1) % height * width + x;
    }
  }

  // For Simulation::set_neighbours.
  void operator()(pdes::LpId id, const std::function<void(pdes::LpId)>& to) const {
    to(id);
    for (std::uint64_t direction = 0; direction < 4; ++direction) to(neighbour(id, direction));
  }
};

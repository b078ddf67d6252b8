// Sorts the keys of a bucket: a counting pass by time, with as many slots as keys, leaves almost nothing to the
// insertion sort that follows.  A comparison sort would mispredict every other comparison.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pdes/event.h"

namespace pdes {

class KeySort {
 public:
  using Pieces = std::span<const std::span<const Key>>;

  // Sorts the keys of all pieces, `count` together, into `sorted`, which has room for them.  Times should lie between `from`
  // and `to` and be spread over that interval, or be all the same; otherwise it takes longer.
  void operator()(Pieces pieces, std::size_t count, Key* sorted, Time from, Time to);

  std::size_t bytes() const noexcept { return (counts_.capacity() + slots_.capacity()) * sizeof(std::uint32_t); }

 private:
  template <class Place>
  std::uint32_t count_places(Pieces pieces, std::size_t count, std::size_t slots, Place place);
  void move_to_places(Pieces pieces, Key* sorted);
  void sort_crowded(Key* sorted);
  bool sort_ties(Pieces pieces, std::size_t count, Key* sorted);

  std::vector<std::uint32_t> counts_, slots_;
};

}  // namespace pdes

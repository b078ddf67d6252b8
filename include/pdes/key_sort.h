// Sorts the keys of a bucket: a counting pass by time into as many slots as there are keys leaves nearly nothing for the
// insertion sort that follows.  A comparison sort would mispredict at every other comparison.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pdes/event.h"

namespace pdes {

class KeySort {
 public:
  // Sorts count keys from `keys` into `sorted`; they do not overlap.  keys is left in any order.  All times should lie
  // from `from` to `to`, and be spread over it: else it takes longer.
  void operator()(Key* keys, std::size_t count, Key* sorted, Time from, Time to);

  std::size_t bytes() const noexcept { return (counts_.capacity() + slots_.capacity()) * sizeof(std::uint32_t); }

 private:
  template <class Place>
  bool spread(const Key* keys, std::size_t count, Key* sorted, Place place);
  void sort_crowded(Key* keys, std::size_t count, Key* sorted);
  void sort_ties(const Key* keys, std::size_t count, Key* sorted);

  std::vector<std::uint32_t> counts_, slots_;
};

}  // namespace pdes

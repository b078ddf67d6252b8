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
  // Sorts keys into `sorted`, which has room for them.  Times should lie between `from` and `to` and be spread over
  // that interval; otherwise it takes longer.
  void operator()(std::span<const Key> keys, Key* sorted, Time from, Time to);

  std::size_t bytes() const noexcept { return (counts_.capacity() + slots_.capacity()) * sizeof(std::uint32_t); }

 private:
  template <class Place>
  bool spread(std::span<const Key> keys, Key* sorted, Place place);
  bool sum_up() noexcept;
  void sort_crowded(Key* sorted);
  void sort_ties(std::span<Key> keys);

  std::vector<std::uint32_t> counts_, slots_;
};

}  // namespace pdes

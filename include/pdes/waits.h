// How long a thread of a simulation has waited for the others.
#pragma once

#include <cstddef>
#include <vector>

namespace pdes {

struct Waits {
  double all_s = 0;
  std::vector<double> on_s;  // for each thread of the rank, as far as it is known
  void add(double seconds, std::size_t thread) noexcept {
    all_s += seconds;
    if (thread < on_s.size()) on_s[thread] += seconds;
  }
};

}  // namespace pdes

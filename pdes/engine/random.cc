#include "pdes/random.h"

#include <Random123/philox.h>

#include <cmath>

namespace pdes {

std::uint64_t Random::philox() noexcept {
  const std::uint64_t place = stream_.step++;
  if (place % 2 == 0) return stream_.spare;
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const r123::Philox4x32::ctr_type counter = {{low(place), low(place >> 32), 0, 0}};
  const r123::Philox4x32::key_type key = {{low(stream_.state), low(stream_.state >> 32)}};
  const auto block = r123::Philox4x32{}(counter, key);
  stream_.spare = std::uint64_t{block[3]} << 32 | block[2];
  return std::uint64_t{block[1]} << 32 | block[0];
}

double natural_log(double x) noexcept { return std::log(x); }

double Random::exponential(double mean) noexcept { return -mean * natural_log(1 - uniform()); }

}  // namespace pdes

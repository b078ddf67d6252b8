// Random numbers of LPs.  A stream is named by (seed, LP, number), whoever runs the LP; a further one of an LP that comes and
// goes by what made it, too (Partition::stream).  Its numbers are the same on every machine, for any partition and any version
// of the C library.
//
//   splitmix  splitmix64 (Steele, Lea, Flood 2014) with each stream's own step: about a nanosecond.  The default.
//   philox    Philox2x64-10 (Salmon et al. 2011) from Random123, with the stream as key and a counter: 10 ns more for each
//             event, for those who want streams that are independent by construction.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "pdes/event.h"
#include "pdes/options.h"

namespace pdes {

// Bijective; every bit of the result depends on every bit of x.
constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

// For one seed the states of all streams differ, because each step from (LP, number) to state is bijective; hence so do
// Philox's keys.  Splitmix streams start at unrelated places, and nearly all have different steps, so two streams that
// meet separate again.
struct Stream {
  std::uint64_t state = 0;  // splitmix: the place reached; philox: the key
  std::uint64_t step = 1;   // splitmix: from place to place, odd; philox: the counter, even while a spare is kept
  std::uint64_t spare = 0;  // philox: second half of the block
  constexpr Stream() = default;
  constexpr Stream(std::uint64_t seed, LpId lp, std::uint32_t number) noexcept
      : state(mix(mix(std::uint64_t{lp} << 32 | number) ^ mix(~seed))), step(mix(~state) | 1) {
    // Steps with long runs of equal bits mix badly (Steele et al., section 5).
    if (std::popcount(step ^ step >> 1) < 24) step ^= 0xaaaaaaaaaaaaaaaa;
  }
};

// Of the 256 layers that exponential_of draws from, for code that does as it does: layer i reaches to kLayerEdges[i] and lies
// under e^-x up to kLayerEdges[i + 1].
extern const std::array<double, 257> kLayerEdges;

class Random {
 public:
  Random(Stream& stream, Generator generator) noexcept : stream_(stream), generator_(generator) {}

  // 64 random bits.
  std::uint64_t bits() noexcept { return generator_ == Generator::splitmix ? splitmix() : philox(); }
  // In [0, 1), a multiple of 2^-53.
  double uniform() noexcept { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  // In [0, n), n > 0; bias below n / 2^64.
  std::uint64_t integer(std::uint64_t n) noexcept {
    __extension__ typedef unsigned __int128 Wide;  // no warning in a program that asks for the standard's types alone
    return static_cast<std::uint64_t>(static_cast<Wide>(bits()) * n >> 64);
  }
  bool chance(double p) noexcept { return uniform() < p; }
  // 0 or more.  By the ziggurat of Marsaglia and Tsang (2000): of one draw, 98.9 times in 100, without a logarithm.
  double exponential(double mean) noexcept;
  double exponential_of(std::uint64_t bits) noexcept;  // of mean 1; bits: drawn just now

 private:
  std::uint64_t splitmix() noexcept { return mix(stream_.state += stream_.step); }
  std::uint64_t philox() noexcept;
  double beyond_edge(std::size_t layer, double x) noexcept;

  Stream& stream_;
  Generator generator_;
};

// The natural logarithm of x in (0, 1], accurate to 2^-50 of the result or better, from +, -, * and a table alone: the same on
// every machine, for distributions of one's own.
double natural_log(double x) noexcept;

}  // namespace pdes

// A model of cache coherence: cores with a private cache each, on two sockets, kept coherent by MESI with a directory that
// knows who holds each line.  It has no time: it says what each access does to the lines, and whom it disturbs.
//
//   a read that misses    another core has the line: a transfer, and both share it from then on (S).  Nobody has it: a fill
//                         from memory, and this core has it alone (E).
//   a write that misses   the same, and whoever had the line loses it (M)
//   a write to a shared   an upgrade: the others lose the line, nothing is transferred (M).  Whoever shares a line does not
//   line                  know that all others have lost it meanwhile, and asks
//   a full set            loses the line that was used least recently, and the directory knows it
//
// A transfer or an upgrade is far if it crosses the sockets: the line comes from the other one because nobody on one's own
// has it, or somebody there loses it.  The first half of the cores is one socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace cores {

inline constexpr unsigned kMostCores = 64;
inline constexpr std::uint64_t kLineBytes = 64;

using CoreIndex = unsigned;
using LineNumber = std::uint64_t;  // address / kLineBytes
using CoreSet = std::uint64_t;     // a bit for each core

enum class Effect : std::uint8_t { hit, fill, transfer, upgrade };

struct Outcome {
  Effect effect = Effect::hit;
  bool far = false;

  bool disturbs() const { return effect == Effect::transfer || effect == Effect::upgrade; }
};

struct Geometry {
  std::size_t sets = 1024;  // a power of two
  std::size_t ways = 16;    // 64 lines of 16 ways of 1024 sets: 1 MB
};

class Coherence {
 public:
  explicit Coherence(unsigned cores, Geometry geometry = {});

  Outcome read(CoreIndex core, LineNumber line);
  Outcome write(CoreIndex core, LineNumber line);

 private:
  enum class State : std::uint8_t { invalid, shared, exclusive, modified };

  struct Way {
    LineNumber line = 0;
    std::uint32_t used = 0;  // when, in accesses of this core
    State state = State::invalid;
  };

  Way* held(CoreIndex core, LineNumber line);
  Way* used(CoreIndex core, LineNumber line);
  Way& room_for(CoreIndex core, LineNumber line);
  Outcome miss(CoreIndex core, LineNumber line, State wanted);
  void invalidate(CoreSet holders, LineNumber line);
  void share(CoreSet holders, LineNumber line);
  Way* set_of(CoreIndex core, LineNumber line);
  CoreSet socket_of(CoreIndex core) const { return core < first_far_ ? near_ : ~near_; }

  const Geometry geometry_;
  const unsigned first_far_;  // the first core of the second socket
  const CoreSet near_;        // the cores of the first one
  std::vector<Way> ways_;     // of all cores
  std::vector<std::uint32_t> ticks_;
  std::unordered_map<LineNumber, CoreSet> holders_;
};

}  // namespace cores

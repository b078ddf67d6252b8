// Events to and from other ranks: as bytes, one message per rank and window.
//
// A message is a sequence of {time, tie, header, payload}, each payload as long as its type says; before it, what ranks tell
// each other to move load.  Both ranks run the same program on machines of one kind.  Thread safety: for the first thread;
// arrivals(i) is thread i's between two barriers.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/reducing_barrier.h"
#include "pdes/mpi.h"

namespace pdes {

struct Team;

class Exchange {
 public:
  Exchange(Team& team, Ranks& ranks);

  // What travels beside events, in a window in which all ranks expect it: what LoadBoard has of it.
  enum class Beside : std::uint8_t { nothing, loads, lps };
  // Sends the outboxes of that parity, with this rank's reduction.
  void begin(unsigned parity, ReducingBarrier::Reduction here, Beside beside);
  // Returns the reduction of all ranks; arrivals are what they sent.  Adds the seconds of waiting to blocked_s.
  ReducingBarrier::Reduction end(double& blocked_s);
  std::vector<Key>& arrivals(unsigned thread) noexcept { return arrivals_[thread]; }

 private:
  template <class Work>
  void or_abort(Work&& work);
  void pack(unsigned parity);
  void pack_beside(unsigned rank);
  void unpack(unsigned rank, std::span<const std::byte> message);

  Team& team_;
  Ranks& ranks_;
  Beside beside_ = Beside::nothing;
  std::vector<std::vector<std::byte>> outgoing_;  // by rank
  std::vector<std::vector<Key>> arrivals_;        // by thread
};

}  // namespace pdes

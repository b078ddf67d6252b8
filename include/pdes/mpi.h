// The ranks of a distributed simulation.  There is one implementation, over MPI (pdes/mpi); the engine knows only this
// interface.  Thread safety: for the thread that called start_ranks only.
//
// A rank that dies, or gives no sign of life for PDES_RANK_TIMEOUT seconds (60; 0: forever) while others wait for it,
// ends the whole job with a line that names it.  A busy rank gives signs of life automatically, and while all are
// stopped together (Ctrl-Z, a machine that sleeps) no rank counts as silent.
//
// PDES_RANK_MESSAGES, of the first rank: in each window every rank writes to every other one (all), or only to those that
// it has events for (needed); auto, the default, takes the first below 64 ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "pdes/event.h"

namespace pdes {

class Ranks {
 public:
  virtual ~Ranks() = default;
  virtual int rank() const noexcept = 0;
  virtual int count() const noexcept = 0;
  // CPUs that this rank may count as its own: those it may run on, divided by the ranks that may run there.
  virtual double cpus() const noexcept = 0;

  // What the ranks agree on in each window.
  struct Vote {
    Time least;           // the minimum of all ranks; an event that is sent counts with its sender
    std::uint32_t flags;  // of all ranks, combined by or
    Time end = kNever;    // the minimum of all ranks: where the run ends
  };

  // Ends a window: sends outgoing[r] to each other rank r, with the vote.  Returns at once, so that what is done before
  // end_exchange overlaps with it.  outgoing belongs to Ranks until end_exchange has returned, and then contains some
  // bytes: clear it.  outgoing[rank()] is ignored.
  virtual void begin_exchange(std::vector<std::vector<std::byte>>& outgoing, Vote mine) = 0;
  // Waits for this window's messages from all other ranks, which have then finished it; returns the combined vote.
  virtual Vote end_exchange() = 0;
  // What rank r sent, valid until the next begin_exchange; empty for r == rank().
  virtual std::span<const std::byte> received(int r) const noexcept = 0;

  // On rank 0, all[r] is what rank r passed; on the other ranks all is empty.
  virtual std::vector<std::vector<std::byte>> gather(const std::vector<std::byte>& mine) = 0;
  // Every rank gets what rank 0 passed.
  virtual void broadcast(std::vector<std::byte>& bytes) = 0;
  // Ends the whole job with a line on stderr.
  [[noreturn]] virtual void abort(const char* why) = 0;
};

// Starts MPI unless it was started already; the result's destructor ends it.  Null if the program was not started by
// mpirun, or as the only rank: then MPI is not touched.  Throws Error.
std::unique_ptr<Ranks> start_ranks(int* argc, char*** argv);

}  // namespace pdes

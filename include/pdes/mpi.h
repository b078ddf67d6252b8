// The ranks of a distributed simulation.  One implementation, over MPI (pdes/mpi); the engine knows this interface only.
// Thread safety: the thread that called start_ranks, alone.
//
// A rank that dies, or gives no sign of life for PDES_RANK_TIMEOUT seconds (60; 0: forever) while others wait
// for it, ends the whole job with a line that names it.  A rank that is busy gives signs of life by itself, and
// while all stand still together (Ctrl-Z, a machine that sleeps) nobody is silent.
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
  // CPUs that this rank may count as its own: those it may run on, shared with the ranks that may run there too.
  virtual double cpus() const noexcept = 0;

  // What the ranks agree on in each window.
  struct Vote {
    Time least;           // of all ranks: the smallest; an event that is sent counts with its sender
    std::uint32_t flags;  // of all ranks: or-ed
  };

  // Ends a window: sends outgoing[r] to each other rank r and the vote with it.  Returns at once;
  // what is done before end_exchange is overlapped with it.  outgoing belongs to Ranks until end_exchange returned, and
  // has some bytes more then: clear it.  outgoing[rank()] is ignored.
  virtual void begin_exchange(std::vector<std::vector<std::byte>>& outgoing, Vote mine) = 0;
  // Waits for the messages of this window from all other ranks, which have finished it then; returns everybody's vote.
  virtual Vote end_exchange() = 0;
  // What rank r sent, until the next begin_exchange; nothing for r == rank().
  virtual std::span<const std::byte> received(int r) const noexcept = 0;

  // all[r] on rank 0 is what rank r gave; on the other ranks all is empty.
  virtual std::vector<std::vector<std::byte>> gather(const std::vector<std::byte>& mine) = 0;
  // Everybody gets what rank 0 gives.
  virtual void broadcast(std::vector<std::byte>& bytes) = 0;
  // Ends the whole job with a line on stderr.
  [[noreturn]] virtual void abort(const char* why) = 0;
};

// Starts MPI if nobody has; its end is that of what is returned.  Null if the program was not started by mpirun, or
// alone: then MPI is not touched.  Throws Error.
std::unique_ptr<Ranks> start_ranks(int* argc, char*** argv);

}  // namespace pdes

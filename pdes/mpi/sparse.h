// A rank writes only to those for which it has events, and nobody knows beforehand from whom something comes.  The
// dynamic sparse data exchange of Hoefler, Siebert and Lumsdaine (Scalable communication protocols for dynamic sparse data
// exchange, PPoPP 2010), whose barrier is here the reduction of the votes: a rank votes when all that it sent is being
// received, so once the votes are counted, in a tree, nothing of this window is under way.  What a window costs grows
// with the ranks that one has events for, and with the logarithm of all.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "mpi/watch.h"
#include "mpi/window_exchange.h"

namespace pdes {

class Sparse final : public WindowExchange {
 public:
  Sparse(MPI_Comm comm, int rank, int count, Watch& watch);  // tags 0 and 1
  ~Sparse() override;
  Sparse(const Sparse&) = delete;
  Sparse& operator=(const Sparse&) = delete;
  void begin(std::vector<std::vector<std::byte>>& outgoing, const Ranks::Vote& mine) override;
  Ranks::Vote end() override;
  std::span<const std::byte> received(int rank) const noexcept override;

 private:
  // Larger messages go in parts, which come in order.
  static constexpr std::size_t kPart = 1 << 20;
  struct Box {
    std::vector<std::byte> bytes;
    std::size_t filled = 0;
  };

  // A rank may be one window ahead of another: messages of odd and even windows must not be confused.
  int tag() const noexcept { return static_cast<int>(window_ % 2); }
  void send(int rank, std::span<const std::byte> bytes);
  // Each: whether something happened.
  bool advance();
  bool receive();
  bool vote();
  std::vector<int> missing() const;

  const MPI_Comm comm_;
  Watch& watch_;
  std::vector<int> others_;
  std::vector<Box> boxes_;                    // by rank
  std::vector<int> senders_;                  // of this window
  std::vector<MPI_Request> sends_;            // until the other side receives them
  MPI_Request receiving_ = MPI_REQUEST_NULL;  // one at a time, so that a box grows only when it is at rest
  MPI_Request counting_ = MPI_REQUEST_NULL;   // the reduction
  enum class Stage { sending, counting, counted } stage_ = Stage::counted;
  std::uint64_t window_ = 0;  // the open one, or the last one, from 1
  Ranks::Vote mine_{}, all_{};
  MPI_Datatype type_;
  MPI_Op combine_;
};

}  // namespace pdes

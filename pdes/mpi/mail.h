// Messages of any size between this rank and the others, one at a time in each direction under one tag.
//
// A message is sent in parts: part i holds at most kFirst << i bytes, and a full part is followed by another, which may
// be empty.  So the receiver has a buffer ready before a message comes, without knowing its size, and most messages are
// one part.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <span>
#include <vector>

#include "mpi/watch.h"

namespace pdes {

class Mail {
 public:
  Mail(MPI_Comm comm, int tag, Watch& watch);
  ~Mail();  // drops what is expected but has not come
  Mail(const Mail&) = delete;
  Mail& operator=(const Mail&) = delete;

  void expect(int rank);                                  // before or after it is sent
  void send(int rank, std::span<const std::byte> bytes);  // the caller keeps the bytes until wait has returned
  void wait();                                            // until everything has been received and sent
  // What was received, valid until expect.
  std::span<const std::byte> received(int rank) const noexcept;

 private:
  static constexpr std::size_t kFirst = 64 << 10, kLargest = 1 << 30;
  static std::size_t room(unsigned part) noexcept { return part < 14 ? kFirst << part : kLargest; }

  struct Box {
    std::vector<std::byte> bytes;
    std::size_t filled = 0;
    unsigned part = 0;
  };
  void post(int rank);
  void arrived(int rank, const MPI_Status& status);
  std::vector<int> missing() const;

  const MPI_Comm comm_;
  const int tag_;
  Watch& watch_;
  std::vector<Box> boxes_;             // by rank
  std::vector<MPI_Request> requests_;  // by rank: first what is expected, then what is sent
  std::vector<int> sent_to_;
  std::vector<int> done_;
  std::vector<MPI_Status> statuses_;
};

}  // namespace pdes

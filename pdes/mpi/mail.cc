#include "mpi/mail.h"

#include <algorithm>

namespace pdes {

Mail::Mail(MPI_Comm comm, int tag, Watch& watch) : comm_(comm), tag_(tag), watch_(watch) {
  int count = 0;
  MPI_Comm_size(comm, &count);
  boxes_.resize(static_cast<std::size_t>(count));
  requests_.assign(boxes_.size(), MPI_REQUEST_NULL);
}

Mail::~Mail() {
  for (MPI_Request& request : requests_) {
    if (request == MPI_REQUEST_NULL) continue;
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

void Mail::expect(int rank) {
  Box& box = boxes_[static_cast<std::size_t>(rank)];
  box.filled = 0;
  box.part = 0;
  post(rank);
}

void Mail::post(int rank) {
  const auto r = static_cast<std::size_t>(rank);
  Box& box = boxes_[r];
  const std::size_t size = room(box.part);
  if (box.bytes.size() < box.filled + size) box.bytes.resize(box.filled + size);
  MPI_Irecv(box.bytes.data() + box.filled, static_cast<int>(size), MPI_BYTE, rank, tag_, comm_, &requests_[r]);
}

void Mail::send(int rank, std::span<const std::byte> bytes) {
  for (unsigned part = 0;; ++part) {
    const std::size_t size = std::min(bytes.size(), room(part));
    sent_to_.push_back(rank);
    MPI_Isend(bytes.data(), static_cast<int>(size), MPI_BYTE, rank, tag_, comm_, &requests_.emplace_back());
    bytes = bytes.subspan(size);
    if (size < room(part)) return;
  }
}

void Mail::wait() {
  done_.resize(requests_.size());
  statuses_.resize(requests_.size());
  Watch::Wait wait(watch_);
  for (;;) {
    int done = 0;
    MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &done, done_.data(), statuses_.data());
    if (done == MPI_UNDEFINED) break;
    if (done == 0) wait.pause([this] { return missing(); });
    for (std::size_t i = 0; i < static_cast<std::size_t>(done); ++i)
      if (static_cast<std::size_t>(done_[i]) < boxes_.size()) arrived(done_[i], statuses_[i]);
  }
  requests_.resize(boxes_.size());
  sent_to_.clear();
}

void Mail::arrived(int rank, const MPI_Status& status) {
  int size = 0;
  MPI_Get_count(&status, MPI_BYTE, &size);
  Box& box = boxes_[static_cast<std::size_t>(rank)];
  box.filled += static_cast<std::size_t>(size);
  if (static_cast<std::size_t>(size) < room(box.part)) return;
  ++box.part;
  post(rank);
}

std::span<const std::byte> Mail::received(int rank) const noexcept {
  const Box& box = boxes_[static_cast<std::size_t>(rank)];
  return {box.bytes.data(), box.filled};
}

std::vector<int> Mail::missing() const {
  std::vector<int> ranks;
  for (std::size_t i = 0; i < requests_.size(); ++i)
    if (requests_[i] != MPI_REQUEST_NULL)
      ranks.push_back(i < boxes_.size() ? static_cast<int>(i) : sent_to_[i - boxes_.size()]);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

}  // namespace pdes

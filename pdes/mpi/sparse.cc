#include "mpi/sparse.h"

#include <algorithm>

namespace pdes {
namespace {

void combine(void* from, void* into, int* count, MPI_Datatype*) {
  const auto* a = static_cast<const Ranks::Vote*>(from);
  auto* b = static_cast<Ranks::Vote*>(into);
  for (int i = 0; i < *count; ++i) b[i] = combined(a[i], b[i]);
}

}  // namespace

Sparse::Sparse(MPI_Comm comm, int rank, int count, Watch& watch)
    : comm_(comm), watch_(watch), boxes_(static_cast<std::size_t>(count)) {
  for (int r = 0; r < count; ++r)
    if (r != rank) others_.push_back(r);
  MPI_Type_contiguous(sizeof(Ranks::Vote), MPI_BYTE, &type_);
  MPI_Type_commit(&type_);
  MPI_Op_create(combine, 1, &combine_);
}

Sparse::~Sparse() {
  MPI_Op_free(&combine_);
  MPI_Type_free(&type_);
}

void Sparse::begin(std::vector<std::vector<std::byte>>& outgoing, const Ranks::Vote& mine) {
  for (int r : senders_) boxes_[static_cast<std::size_t>(r)].filled = 0;
  senders_.clear();
  ++window_;
  stage_ = Stage::sending;
  mine_ = mine;
  for (int r : others_) send(r, outgoing[static_cast<std::size_t>(r)]);
  advance();
}

// Synchronous sends are complete when they are being received.
void Sparse::send(int rank, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min(bytes.size(), kPart));
    MPI_Issend(part.data(), static_cast<int>(part.size()), MPI_BYTE, rank, tag(), comm_, &sends_.emplace_back());
    bytes = bytes.subspan(part.size());
  }
}

Ranks::Vote Sparse::end() {
  Watch::Wait wait(watch_);
  while (stage_ != Stage::counted || receiving_ != MPI_REQUEST_NULL)
    if (!advance()) wait.pause([this] { return missing(); });
  watch_.window_is_over();
  return all_;
}

// Nobody knows whose vote is not there.  Who has seen the end of this window and left has done its part in the tree.
std::vector<int> Sparse::missing() const {
  std::vector<int> ranks;
  for (int r : others_)
    if (!watch_.left_after(r, window_)) ranks.push_back(r);
  return ranks;
}

bool Sparse::advance() {
  const bool received = receive();
  return vote() || received;
}

bool Sparse::receive() {
  int there = 0;
  if (receiving_ != MPI_REQUEST_NULL) {
    MPI_Test(&receiving_, &there, MPI_STATUS_IGNORE);
    return there != 0;
  }
  MPI_Message message;
  MPI_Status status;
  MPI_Improbe(MPI_ANY_SOURCE, tag(), comm_, &there, &message, &status);
  if (there == 0) return false;
  int size = 0;
  MPI_Get_count(&status, MPI_BYTE, &size);
  Box& box = boxes_[static_cast<std::size_t>(status.MPI_SOURCE)];
  if (box.filled == 0) senders_.push_back(status.MPI_SOURCE);
  const std::size_t at = box.filled;
  box.filled += static_cast<std::size_t>(size);
  if (box.bytes.size() < box.filled) box.bytes.resize(box.filled);
  MPI_Imrecv(box.bytes.data() + at, size, MPI_BYTE, &message, &receiving_);
  return true;
}

bool Sparse::vote() {
  int done = 0;
  if (stage_ == Stage::sending) {
    MPI_Testall(static_cast<int>(sends_.size()), sends_.data(), &done, MPI_STATUSES_IGNORE);
    if (done == 0) return false;
    sends_.clear();
    MPI_Iallreduce(&mine_, &all_, 1, type_, combine_, comm_, &counting_);
    stage_ = Stage::counting;
    return true;
  }
  if (stage_ == Stage::counted) return false;
  MPI_Test(&counting_, &done, MPI_STATUS_IGNORE);
  if (done != 0) stage_ = Stage::counted;
  return done != 0;
}

std::span<const std::byte> Sparse::received(int rank) const noexcept {
  const Box& box = boxes_[static_cast<std::size_t>(rank)];
  return {box.bytes.data(), box.filled};
}

}  // namespace pdes

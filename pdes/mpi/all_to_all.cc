#include "mpi/all_to_all.h"

#include <cstring>
#include <string>

namespace pdes {

AllToAll::AllToAll(MPI_Comm comm, int rank, int count, Watch& watch)
    : rank_(rank), count_(count), watch_(watch), windows_{{comm, 0, watch}, {comm, 1, watch}} {
  expect_others(windows_[0]);
}

void AllToAll::expect_others(Mail& from) const {
  for (int r = 0; r < count_; ++r)
    if (r != rank_) from.expect(r);
}

void AllToAll::begin(std::vector<std::vector<std::byte>>& outgoing, const Ranks::Vote& mine) {
  ++window_;
  vote_ = mine;
  expect_others(windows_[(window_ + 1) % 2]);  // early: a message that comes before it is expected is copied once more
  const Trailer trailer{mine.least, mine.end, mine.flags, window_};
  const auto* bytes = reinterpret_cast<const std::byte*>(&trailer);
  for (int r = 0; r < count_; ++r) {
    if (r == rank_) continue;
    auto& message = outgoing[static_cast<std::size_t>(r)];
    message.insert(message.end(), bytes, bytes + sizeof trailer);
    mail().send(r, message);
  }
}

Ranks::Vote AllToAll::end() {
  mail().wait();
  for (int r = 0; r < count_; ++r) {
    if (r == rank_) continue;
    const auto message = mail().received(r);
    Trailer trailer{0, 0, 0, ~window_};
    if (message.size() >= sizeof trailer) std::memcpy(&trailer, message.last(sizeof trailer).data(), sizeof trailer);
    if (trailer.window != window_)
      watch_.abort(("rank " + std::to_string(r) + " is in window " + std::to_string(trailer.window) + ", not " +
                    std::to_string(window_))
                       .c_str());
    vote_ = combined(vote_, {trailer.least, trailer.flags, trailer.end});
  }
  return vote_;
}

std::span<const std::byte> AllToAll::received(int rank) const noexcept {
  if (rank == rank_) return {};
  const auto message = mail().received(rank);
  return message.first(message.size() - sizeof(Trailer));
}

}  // namespace pdes

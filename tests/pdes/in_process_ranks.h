// Ranks without MPI: several simulations in one process, which exchange over a table.  So the engine's part of ranks runs
// under the sanitizers, too.
#pragma once

#include <algorithm>
#include <barrier>
#include <cstdlib>
#include <functional>
#include <span>
#include <thread>
#include <vector>

#include "pdes/mpi.h"

namespace pdes::test {

using Bytes = std::vector<std::byte>;

struct Table {
  explicit Table(unsigned count) : meeting(count), votes(count), mail(count) {}
  std::barrier<> meeting;
  std::vector<Ranks::Vote> votes;
  std::vector<std::vector<Bytes>> mail;  // from, to
};

class InProcess final : public Ranks {
 public:
  InProcess(Table& table, std::size_t rank) : table_(table), rank_(rank), received_(table.votes.size()) {}
  int rank() const noexcept override { return static_cast<int>(rank_); }
  int count() const noexcept override { return static_cast<int>(received_.size()); }
  double cpus() const noexcept override { return 1; }

  void begin_exchange(std::vector<Bytes>& outgoing, Vote mine) override {
    table_.votes[rank_] = mine;
    table_.mail[rank_] = outgoing;
  }
  Vote end_exchange() override {
    table_.meeting.arrive_and_wait();
    Vote all{kNever, 0};
    for (const Vote& vote : table_.votes)
      all = {std::min(all.least, vote.least), all.flags | vote.flags, std::min(all.end, vote.end)};
    for (std::size_t from = 0; from < received_.size(); ++from)
      received_[from] = from == rank_ ? Bytes() : table_.mail[from][rank_];
    table_.meeting.arrive_and_wait();
    return all;
  }
  std::span<const std::byte> received(int r) const noexcept override { return received_[static_cast<std::size_t>(r)]; }

  std::vector<Bytes> gather(const Bytes& mine) override {
    std::vector<Bytes> outgoing(received_.size(), mine);
    begin_exchange(outgoing, {});
    end_exchange();
    received_[rank_] = mine;
    return rank_ == 0 ? received_ : std::vector<Bytes>();
  }
  void broadcast(Bytes& bytes) override {
    std::vector<Bytes> outgoing(received_.size(), rank_ == 0 ? bytes : Bytes());
    begin_exchange(outgoing, {});
    end_exchange();
    if (rank_ != 0) bytes = received_[0];
  }
  [[noreturn]] void abort(const char*) override { std::abort(); }

 private:
  Table& table_;
  std::size_t rank_;
  std::vector<Bytes> received_;
};

// Calls body(rank, ranks) on a thread of its own for each of so many.
inline void on_ranks(unsigned count, const std::function<void(std::size_t, Ranks&)>& body) {
  Table table(count);
  std::vector<std::jthread> running;
  for (std::size_t rank = 0; rank < count; ++rank)
    running.emplace_back([&, rank] {
      InProcess mine(table, rank);
      body(rank, mine);
    });
}

}  // namespace pdes::test

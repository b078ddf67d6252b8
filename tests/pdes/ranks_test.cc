// Ranks without MPI: several simulations in one process, which exchange over a table.  So the engine's part of ranks runs
// under the sanitizers, too.
#include <gtest/gtest.h>

#include <barrier>
#include <thread>

#include "pdes/mpi.h"
#include "pdes/simulation.h"

namespace pdes {
namespace {

struct Table {
  explicit Table(int ranks) : count(ranks), meeting(ranks), votes(size()), mail(size(), Row(size())), gathered(size()) {}
  using Row = std::vector<std::vector<std::byte>>;
  std::size_t size() const { return static_cast<std::size_t>(count); }

  int count;
  std::barrier<> meeting;
  std::vector<Ranks::Vote> votes;
  std::vector<Row> mail;  // from, to
  Row gathered;
};

class InProcess final : public Ranks {
 public:
  InProcess(Table& table, std::size_t rank) : table_(table), rank_(rank), received_(table.size()) {}
  int rank() const noexcept override { return static_cast<int>(rank_); }
  int count() const noexcept override { return table_.count; }
  double cpus() const noexcept override { return 1; }

  void begin_exchange(std::vector<std::vector<std::byte>>& outgoing, Vote mine) override {
    table_.votes[rank_] = mine;
    table_.mail[rank_] = outgoing;
  }
  Vote end_exchange() override {
    table_.meeting.arrive_and_wait();
    Vote all{kNever, 0};
    for (const Vote& vote : table_.votes) all = {std::min(all.least, vote.least), all.flags | vote.flags};
    for (std::size_t from = 0; from < table_.size(); ++from)
      received_[from] = from == rank_ ? std::vector<std::byte>() : table_.mail[from][rank_];
    table_.meeting.arrive_and_wait();
    return all;
  }
  std::span<const std::byte> received(int r) const noexcept override { return received_[static_cast<std::size_t>(r)]; }

  std::vector<std::vector<std::byte>> gather(const std::vector<std::byte>& mine) override {
    table_.gathered[rank_] = mine;
    table_.meeting.arrive_and_wait();
    auto all = rank_ == 0 ? table_.gathered : Table::Row();
    table_.meeting.arrive_and_wait();
    return all;
  }
  void broadcast(std::vector<std::byte>&) override {}
  [[noreturn]] void abort(const char*) override { std::abort(); }

 private:
  Table& table_;
  std::size_t rank_;
  std::vector<std::vector<std::byte>> received_;
};

struct Walk {
  double way[3];
};
struct Pulse {};

struct Node {
  using Context = pdes::Context<Walk, Pulse>;
  Tally tally{};
  void start(Context& context) {
    context.send_self(1, Pulse{});
    context.send((context.id() + 7) % context.lp_count(), 0.25, Walk{{1, 2, 3}});  // first events need no lookahead
  }
  void on(Context& context, const Pulse&) {
    context.send_self(1, Pulse{});
    auto to = static_cast<LpId>(context.random().integer(context.lp_count()));
    context.send(to, 0.5 + context.random().exponential(1), Walk{{0.1, context.now(), 0}});
  }
  void on(Context& context, const Walk& walk) {
    tally.add(walk.way[1]);
    if (context.random().chance(0.5))
      context.send((context.id() + 1) % context.lp_count(), 0.5, Walk{{0, walk.way[1] * 0.7, 1}}, context.id() % 3);
  }
  void report(Report& report) const { report.tally("way", tally); }
};

struct Outcome {
  Result result;
  std::string error;
};

std::vector<Outcome> run(int ranks, unsigned threads, const std::function<Node(LpId)>& make, Time end = 30) {
  Table table(ranks);
  std::vector<Outcome> outcomes(table.size());
  std::vector<std::jthread> running;
  for (std::size_t rank = 0; rank < table.size(); ++rank) {
    running.emplace_back([&, rank] {
      Options options;
      options.end = end;
      options.lookahead = 0.5;
      options.threads = threads;
      Simulation simulation(options);
      simulation.add<Node>(40, make);
      InProcess mine(table, rank);
      try {
        outcomes[rank].result = simulation.run(ranks == 1 ? nullptr : &mine);
      } catch (const std::exception& error) { outcomes[rank].error = error.what(); }
    });
  }
  running.clear();
  return outcomes;
}

TEST(InProcessRanks, TheSameAnswerOnAnyNumber) {
  auto make = [](LpId) { return Node{}; };
  Result alone = run(1, 1, make)[0].result;
  EXPECT_GT(alone.total.events, 2000u);
  for (auto [ranks, threads] : {std::pair{2, 1u}, {2, 2u}, {3, 1u}, {4, 2u}}) {
    Result first = run(ranks, threads, make)[0].result;
    EXPECT_EQ(first.digest, alone.digest) << ranks << " ranks of " << threads << " threads";
    EXPECT_EQ(first.total.events, alone.total.events);
    EXPECT_EQ(first.total.sent, alone.total.sent);
    EXPECT_EQ(first.total.dropped, alone.total.dropped);
    EXPECT_EQ(first.events_by_type, alone.events_by_type);
    EXPECT_EQ(first.statistics.digest(), alone.statistics.digest());
  }
}

// More ranks and threads than LPs: some have nothing.
TEST(InProcessRanks, EmptyOnes) {
  auto outcomes = run(3, 20, [](LpId) { return Node{}; }, 5);
  EXPECT_EQ(outcomes[0].result.digest, run(1, 1, [](LpId) { return Node{}; }, 5)[0].result.digest);
}

TEST(InProcessRanks, AnLpThatCannotBeBuiltEndsAll) {
  for (unsigned threads : {1u, 2u}) {
    auto outcomes = run(2, threads, [](LpId id) -> Node {
      if (id == 39) throw Error("no LP 39");
      return Node{};
    });
    EXPECT_EQ(outcomes[0].error, "the run failed on another rank");
    EXPECT_EQ(outcomes[1].error, "no LP 39");
  }
}

}  // namespace
}  // namespace pdes

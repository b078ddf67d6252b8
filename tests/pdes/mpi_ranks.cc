// Run by mpirun (mpi_test.py): exchanges of messages of every size, with votes; gather and broadcast.  Each byte of a
// message follows from who sent it to whom in which window.  Or one of the ways to fail:
//   mpi_ranks [check WINDOWS | bench WINDOWS BYTES [PARTNERS] | forever | leave | throw | abort | stop | busy SECONDS]
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>

#include "pdes/mpi.h"

extern "C" int MPI_Initialized(int*);

namespace {

using Bytes = std::vector<std::byte>;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "mpi_ranks: %s\n", what);
  std::_Exit(3);
}

// What `from` sends to `to` in a window: mostly little, sometimes nothing, sometimes megabytes, and sizes at which a
// message with its trailer just fills a part.
Bytes message(unsigned window, int from, int to) {
  if (window % 7 == 3) return {};  // nobody has anything for anybody
  std::mt19937_64 random((std::uint64_t{window} << 32) ^ static_cast<std::uint64_t>(from * 1000 + to));
  static constexpr std::size_t kBelow[] = {1, 3'000'000, 100'000, 5'000, 5'000, 5'000, 5'000};
  static constexpr std::size_t kEdges[] = {65536 - 16, 65536 - 17, 65536 - 15, 3 * 65536 - 16, 7 * 65536 - 16};
  const std::size_t kind = random() % 8;
  Bytes bytes(kind == 7 ? kEdges[random() % std::size(kEdges)] : random() % kBelow[kind]);
  std::uint64_t state = random();
  for (std::byte& byte : bytes) byte = static_cast<std::byte>((state = state * 6364136223846793005 + 1) >> 56);
  return bytes;
}

pdes::Time least(unsigned window, int rank) {
  return window + ((window * 7 + static_cast<unsigned>(rank) * 5) % 11) * 0.125;
}

void check_window(pdes::Ranks& ranks, unsigned window, std::vector<Bytes>& outgoing) {
  const int me = ranks.rank(), count = ranks.count();
  const auto flag = [=](int rank) { return window % 5 == 0 ? 1u << rank : 0u; };
  pdes::Ranks::Vote all{HUGE_VAL, 0};
  for (int r = 0; r < count; ++r) {
    outgoing[static_cast<std::size_t>(r)] = message(window, me, r);
    all = {std::min(all.least, least(window, r)), all.flags | flag(r)};
  }
  // Some come late, so that others are a window ahead.
  if (window % 16 == static_cast<unsigned>(me)) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  ranks.begin_exchange(outgoing, {least(window, me), flag(me)});
  const auto vote = ranks.end_exchange();
  require(vote.least == all.least, "the least time of all is wrong");
  require(vote.flags == all.flags, "the flags of all are wrong");
  for (int r = 0; r < count; ++r) {
    const Bytes expected = r == me ? Bytes{} : message(window, r, me);
    require(std::ranges::equal(ranks.received(r), expected), "a message is wrong");
  }
}

void check(pdes::Ranks& ranks, unsigned windows) {
  const int me = ranks.rank(), count = ranks.count();
  std::vector<Bytes> outgoing(static_cast<std::size_t>(count));
  for (unsigned window = 0; window < windows; ++window) check_window(ranks, window, outgoing);
  for (unsigned round = 0; round < 20; ++round) {
    std::vector<Bytes> all;
    for (int r = 0; me == 0 && r < count; ++r) all.push_back(message(round, r, 0));
    require(ranks.gather(message(round, me, 0)) == all, "gather is wrong");
    Bytes bytes = message(round, me, 1);
    ranks.broadcast(bytes);
    require(bytes == message(round, 0, 1), "broadcast is wrong");
  }
  std::printf("rank %d of %d: ok, %.2f CPUs\n", me, count, ranks.cpus());
}

// Each rank sends to the next `partners` ones, in a ring.
void bench(pdes::Ranks& ranks, unsigned windows, std::size_t size, int partners) {
  using Clock = std::chrono::steady_clock;
  const int count = ranks.count();
  std::vector<Bytes> outgoing(static_cast<std::size_t>(count));
  std::vector<double> rounds;
  for (int round = 0; round < 10; ++round) {
    const auto start = Clock::now();
    for (unsigned window = 0; window < windows; ++window) {
      for (Bytes& bytes : outgoing) bytes.clear();
      for (int i = 1; i <= partners; ++i) outgoing[static_cast<std::size_t>((ranks.rank() + i) % count)].resize(size);
      ranks.begin_exchange(outgoing, {1.0, 0});
      ranks.end_exchange();
    }
    rounds.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count() / windows);
  }
  std::ranges::sort(rounds);
  if (ranks.rank() == 0)
    std::printf("%d ranks, %zu bytes to %d: %.0f ns, median %.0f\n", count, size, partners, rounds.front(), rounds[5]);
}

void exchange(pdes::Ranks& ranks, pdes::Time time = 0) {
  std::vector<Bytes> outgoing(static_cast<std::size_t>(ranks.count()), Bytes(100));
  ranks.begin_exchange(outgoing, {time, 0});
  ranks.end_exchange();
}

void fail(pdes::Ranks& ranks, const std::string& how, double seconds) {
  exchange(ranks);
  std::printf("rank %d is process %d\n", ranks.rank(), getpid());
  std::fflush(stdout);
  const bool last = ranks.rank() == ranks.count() - 1;
  if (how == "forever")
    for (;;) exchange(ranks);
  if (how == "leave" && last) return;
  if (how == "throw" && last) throw std::runtime_error("this rank has had enough");
  if (how == "abort" && last) ranks.abort("no more of this");
  if (how == "busy") {
    if (last) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    ranks.gather({});  // rank 0 waits for the busy one, and rank 1 for rank 0
    Bytes nothing;
    ranks.broadcast(nothing);
  }
  exchange(ranks);
  if (how == "stop" && last) std::raise(SIGSTOP);
}

bool mpi_runs() {
  int runs = 0;
  MPI_Initialized(&runs);
  return runs != 0;
}

}  // namespace

int main(int argc, char** argv) try {
  const auto ranks = pdes::start_ranks(&argc, &argv);
  const std::string what = argc > 1 ? argv[1] : "check";
  const double number = argc > 2 ? std::atof(argv[2]) : 100;
  if (!ranks) std::printf("no ranks, %s\n", mpi_runs() ? "but MPI" : "no MPI");
  else if (what == "check") check(*ranks, static_cast<unsigned>(number));
  else if (what == "bench")
    bench(*ranks, static_cast<unsigned>(number), argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 0,
          argc > 4 ? std::min(std::atoi(argv[4]), ranks->count() - 1) : ranks->count() - 1);
  else fail(*ranks, what, number);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "mpi_ranks: %s\n", error.what());
  return 1;
}

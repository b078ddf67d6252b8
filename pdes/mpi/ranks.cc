// Ranks over MPI.
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "mpi/all_to_all.h"
#include "mpi/launched.h"
#include "mpi/mail.h"
#include "mpi/sparse.h"
#include "mpi/watch.h"
#include "pdes/mpi.h"
#include "pdes/options.h"

namespace pdes {
namespace {

// MPI itself, from its start to its end; whoever started it ends it.
class Library {
 public:
  Library(int* argc, char*** argv) {
    int running = 0, level = 0;
    MPI_Initialized(&running);
    if (running) {
      MPI_Query_thread(&level);
    } else {
      MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &level);
      ours_ = true;
    }
    // One thread runs the windows; a second one enters MPI, but never at the same time, to give signs of life.
    if (level < MPI_THREAD_SERIALIZED) throw Error("MPI runs without MPI_THREAD_SERIALIZED, which the ranks need");
  }
  Library(Library&& other) noexcept : ours_(std::exchange(other.ours_, false)) {}
  ~Library() {
    if (ours_) MPI_Finalize();
  }

 private:
  bool ours_ = false;
};

// Keeps the simulation's messages apart from all others.
class Communicator {
 public:
  Communicator() { MPI_Comm_dup(MPI_COMM_WORLD, &comm_); }
  ~Communicator() { MPI_Comm_free(&comm_); }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  operator MPI_Comm() const noexcept { return comm_; }
  int rank() const {
    int rank = 0;
    MPI_Comm_rank(comm_, &rank);
    return rank;
  }
  int count() const {
    int count = 0;
    MPI_Comm_size(comm_, &count);
    return count;
  }

 private:
  MPI_Comm comm_;
};

// Each allowed CPU, divided by the ranks of this machine that are allowed to use it.
double share_of_cpus() {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof allowed, &allowed);
  int mine[CPU_SETSIZE], all[CPU_SETSIZE];
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) mine[cpu] = CPU_ISSET(cpu, &allowed) ? 1 : 0;
  MPI_Comm here;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
  MPI_Allreduce(mine, all, CPU_SETSIZE, MPI_INT, MPI_SUM, here);
  MPI_Comm_free(&here);
  double share = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (mine[cpu]) share += 1.0 / all[cpu];
  return share;
}

Watch::Seconds silence_limit() {
  const char* text = std::getenv("PDES_RANK_TIMEOUT");
  if (text == nullptr) return Watch::Seconds{60};
  char* rest = nullptr;
  const double seconds = std::strtod(text, &rest);
  if (rest == text || *rest != 0 || !std::isfinite(seconds) || seconds < 0)
    throw Error(std::string("PDES_RANK_TIMEOUT is '") + text + "', not a number of seconds");
  return Watch::Seconds{seconds};
}

// From this many on a window is cheaper if ranks write only to those that they have events for (docs/results/ranks.md).
constexpr int kSparseFrom = 64;

enum Messages : int { kAuto, kAll, kNeeded, kUnknown };

Messages messages_of(const char* text) {
  const std::string_view how = text == nullptr || *text == 0 ? "auto" : text;
  return how == "auto" ? kAuto : how == "all" ? kAll : how == "needed" ? kNeeded : kUnknown;
}

// The first rank chooses for all: mpirun does not hand the environment to other machines.
bool is_sparse(const Communicator& comm) {
  int how = messages_of(std::getenv("PDES_RANK_MESSAGES"));
  MPI_Bcast(&how, 1, MPI_INT, 0, comm);
  if (how == kUnknown) throw Error("PDES_RANK_MESSAGES of the first rank is not auto, all or needed");
  return how == kNeeded || (how == kAuto && comm.count() >= kSparseFrom);
}

class MpiRanks final : public Ranks {
 public:
  explicit MpiRanks(Library library)
      : library_(std::move(library)),
        rank_(comm_.rank()),
        count_(comm_.count()),
        cpus_(share_of_cpus()),
        sparse_(is_sparse(comm_)),
        watch_(comm_, silence_limit(), cpus_ < 1),
        letters_(comm_, 2, watch_) {
    if (sparse_) windows_ = std::make_unique<Sparse>(comm_, rank_, count_, watch_);
    else windows_ = std::make_unique<AllToAll>(comm_, rank_, count_, watch_);
  }
  ~MpiRanks() override { watch_.leave(); }

  int rank() const noexcept override { return rank_; }
  int count() const noexcept override { return count_; }
  double cpus() const noexcept override { return cpus_; }

  void begin_exchange(std::vector<std::vector<std::byte>>& outgoing, Vote mine) override {
    std::lock_guard in_mpi(watch_.mutex());
    windows_->begin(outgoing, mine);
  }
  Vote end_exchange() override {
    std::lock_guard in_mpi(watch_.mutex());
    return windows_->end();
  }
  std::span<const std::byte> received(int r) const noexcept override { return windows_->received(r); }

  std::vector<std::vector<std::byte>> gather(const std::vector<std::byte>& mine) override;
  void broadcast(std::vector<std::byte>& bytes) override;
  [[noreturn]] void abort(const char* why) override {
    std::lock_guard in_mpi(watch_.mutex());
    watch_.abort(why);
  }

 private:
  template <class Do>
  void for_others(Do each) const {
    for (int r = 0; r < count_; ++r)
      if (r != rank_) each(r);
  }

  Library library_;
  Communicator comm_;
  const int rank_, count_;
  const double cpus_;
  const bool sparse_;
  Watch watch_;
  std::unique_ptr<WindowExchange> windows_;
  Mail letters_;
};

std::vector<std::vector<std::byte>> MpiRanks::gather(const std::vector<std::byte>& mine) {
  std::lock_guard in_mpi(watch_.mutex());
  if (rank_ == 0) for_others([&](int r) { letters_.expect(r); });
  else letters_.send(0, mine);
  letters_.wait();
  std::vector<std::vector<std::byte>> all;
  if (rank_ != 0) return all;
  all.push_back(mine);
  for_others([&](int r) {
    const auto bytes = letters_.received(r);
    all.emplace_back(bytes.begin(), bytes.end());
  });
  return all;
}

void MpiRanks::broadcast(std::vector<std::byte>& bytes) {
  std::lock_guard in_mpi(watch_.mutex());
  if (rank_ == 0) for_others([&](int r) { letters_.send(r, bytes); });
  else letters_.expect(0);
  letters_.wait();
  if (rank_ == 0) return;
  const auto all = letters_.received(0);
  bytes.assign(all.begin(), all.end());
}

}  // namespace

std::unique_ptr<Ranks> start_ranks(int* argc, char*** argv) {
  int running = 0;
  MPI_Initialized(&running);
  if (!running && !launched_with_others()) return nullptr;
  Library library(argc, argv);
  int count = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &count);
  if (count == 1) return nullptr;
  return std::make_unique<MpiRanks>(std::move(library));
}

}  // namespace pdes

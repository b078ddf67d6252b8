#include "mpi/watch.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <string>

namespace pdes {
namespace {

// A sign is this, or the number of windows that were over when the rank left.
constexpr std::uint64_t kAlive = ~std::uint64_t{0};

std::string list(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (int r : ranks) text += (r == ranks.front() ? "" : ", ") + std::to_string(r);
  return text;
}

}  // namespace

Watch::Watch(MPI_Comm world, Seconds limit, bool crowded) : limit_(limit), spins_(crowded ? 0 : kSpins) {
  MPI_Comm_dup(world, &comm_);
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &count_);
  silent_.resize(static_cast<std::size_t>(count_));
  left_.resize(silent_.size());
  windows_of_.resize(silent_.size());
  signs_ = std::jthread([this](const std::stop_token& stop) { give_signs(stop); });
}

Watch::~Watch() { MPI_Comm_free(&comm_); }

void Watch::leave() {
  signs_ = {};
  give_sign(true);
  std::vector<int> staying;
  Wait wait(*this);
  for (;;) {
    hear();
    staying.clear();
    for (int r = 0; r < count_; ++r)
      if (r != rank_ && left_[static_cast<std::size_t>(r)] == 0) staying.push_back(r);
    if (staying.empty()) break;
    wait.pause([&] { return staying; });
  }
}

void Watch::abort(const char* why) const {
  std::fprintf(stderr, "pdes: rank %d of %d: %s\n", rank_, count_, why);
  std::fflush(nullptr);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

bool Watch::Wait::yield() {
  sched_yield();
  const auto now = Clock::now();
  if (checked_ == Clock::time_point{}) {
    checked_ = now;
    std::fill(watch_.silent_.begin(), watch_.silent_.end(), Seconds{});
  }
  if (now - checked_ < kCheck) return false;
  // While a whole machine or job is stopped no rank can give a sign, so a late check counts as two at most.
  step_ = std::min<Seconds>(now - checked_, 2 * kCheck);
  checked_ = now;
  return true;
}

// While the simulation's thread is inside MPI it holds the mutex, and gives the signs itself at its checks.
void Watch::give_signs(const std::stop_token& stop) {
  if (limit_ == Seconds{}) return;
  std::mutex sleep;
  std::condition_variable_any woken;
  std::unique_lock sleeping(sleep);
  while (!woken.wait_for(sleeping, stop, limit_ / 4, [&] { return stop.stop_requested(); })) {
    std::lock_guard in_mpi(mutex_);
    give_sign(false);
    hear();
  }
}

// What is on its way must stay as it is: the number of windows does, once a rank leaves.
void Watch::give_sign(bool leaving) {
  given_ = Clock::now();
  for (int r = 0; r < count_; ++r) {
    if (r == rank_) continue;
    MPI_Request request;
    MPI_Isend(leaving ? &windows_ : &kAlive, 1, MPI_UINT64_T, r, 0, comm_, &request);
    MPI_Request_free(&request);
  }
}

void Watch::hear() {
  for (;;) {
    int there = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, 0, comm_, &there, &status);
    if (!there) return;
    std::uint64_t sign = kAlive;
    MPI_Recv(&sign, 1, MPI_UINT64_T, status.MPI_SOURCE, 0, comm_, MPI_STATUS_IGNORE);
    const auto r = static_cast<std::size_t>(status.MPI_SOURCE);
    silent_[r] = Seconds{};
    if (sign == kAlive) continue;
    left_[r] = 1;
    windows_of_[r] = sign;
  }
}

void Watch::check(const std::vector<int>& missing, Seconds step) {
  hear();
  if (Clock::now() - given_ > limit_ / 4) give_sign(false);
  std::vector<int> silent, left;
  for (int r : missing) {
    const auto at = static_cast<std::size_t>(r);
    if ((silent_[at] += step) > limit_) silent.push_back(r);
    // What it sent before it left may still be in transit: another check decides.
    if (left_[at] > 0 && left_[at]++ > 1) left.push_back(r);
  }
  if (!left.empty()) abort((list(left) + " ended before the simulation did").c_str());
  if (!silent.empty() && limit_ > Seconds{})
    abort((list(silent) + " gave no sign of life for " + std::to_string(std::lround(limit_.count())) +
           " s (PDES_RANK_TIMEOUT)")
              .c_str());
}

}  // namespace pdes

// The threads of one run and what they share.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/exchange.h"
#include "engine/neighbours.h"
#include "engine/reducing_barrier.h"
#include "pdes/mpi.h"
#include "pdes/options.h"
#include "pdes/partition.h"
#include "pdes/result.h"
#include "pdes/simulation.h"

namespace pdes {

inline constexpr unsigned kMaxThreads = 4096;  // on all ranks together

// Why a run ends before its end; or-ed at every meeting.
enum EndFlag : std::uint32_t { kStopped = 1, kFailed = 2 };

// What a thread lets others see of itself while it runs.
struct alignas(128) Gauge {
  // By the owner; relaxed, as nothing else depends on them.
  void show(const Partition& partition) noexcept {
    events_.store(partition.executed(), std::memory_order_relaxed);
    pending_.store(partition.pending.size(), std::memory_order_relaxed);
    bytes_.store(partition.bytes(), std::memory_order_relaxed);
    blocked_s_.store(partition.blocked_s, std::memory_order_relaxed);
  }
  // By anybody.
  std::uint64_t events() const noexcept { return events_.load(std::memory_order_relaxed); }
  std::uint64_t pending() const noexcept { return pending_.load(std::memory_order_relaxed); }
  std::int64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
  double blocked_s() const noexcept { return blocked_s_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> events_{0}, pending_{0};
  std::atomic<std::int64_t> bytes_{0};
  std::atomic<double> blocked_s_{0};
};

struct Team {
  Team(const Options& options, World world, Ranks* ranks, std::atomic<bool>& stop);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  unsigned threads() const noexcept { return static_cast<unsigned>(partitions.size()); }
  bool alone() const noexcept { return threads() == 1 && ranks == nullptr; }

  // ---- By thread `thread`, between two pieces of work of its.
  // Shows its numbers; throws Error over the memory limit; on the first thread: peaks, progress.
  void check_point(unsigned thread, Time now, Time window);
  // Whether somebody called stop().
  bool asked_to_stop() const noexcept { return stop.load(std::memory_order_relaxed); }
  // Does a piece of work; what it throws is kept for the end, the first of each thread.  Returns the flags with which
  // the others are to learn of it at the next meeting.
  template <class Work>
  std::uint32_t attempt(unsigned thread, Work&& work) noexcept {
    try {
      work();
      return 0;
    } catch (...) {
      auto& failure = partitions[thread]->failure;
      if (failure == nullptr) failure = std::current_exception();
      return kFailed;
    }
  }
  // By the first thread: how the run ended, as the last meeting found it.
  void conclude(ReducingBarrier::Reduction all);

  Options options;
  World world;
  Ranks* ranks;
  std::vector<std::unique_ptr<Partition>> partitions;  // of this rank
  std::vector<Gauge> gauges;
  ReducingBarrier barrier;
  std::unique_ptr<NullMessageGroup> null_messages;  // with Sync::neighbours
  std::atomic<bool>& stop;
  std::function<void(const Progress&)> on_progress;
  Simulation::Neighbours neighbours;

  // ---- Of the first thread, and read by the others after a meeting.
  std::chrono::steady_clock::time_point began;  // when the LPs were there
  std::uint64_t peak_pending = 0;
  std::size_t peak_bytes = 0;
  Time reached = 0;
  bool stopped = false, failed = false;
  std::unique_ptr<Exchange> exchange;

 private:
  void look_at_all(Time now, Time window);
  std::chrono::steady_clock::time_point next_progress_;
};

// What each thread of a run does after its LPs are built.
void run_windows(Team& team, unsigned thread);
void run_neighbours(Team& team, unsigned thread);

}  // namespace pdes

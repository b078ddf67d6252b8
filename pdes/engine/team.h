// The threads of one run and what they share.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/balance.h"
#include "engine/checkpoint.h"
#include "engine/critical_path.h"
#include "engine/exchange.h"
#include "engine/neighbours.h"
#include "engine/pace.h"
#include "engine/reducing_barrier.h"
#include "engine/tracer.h"
#include "pdes/mpi.h"
#include "pdes/options.h"
#include "pdes/partition.h"
#include "pdes/result.h"
#include "pdes/simulation.h"

namespace pdes {

inline constexpr unsigned kMaxThreads = 4096;  // on all ranks together

// What threads tell each other at every barrier, combined by or: why the run ends before its end; that it is to be saved; that
// the first thread executes the next windows of all.
enum Flag : std::uint32_t { kStopped = 1, kFailed = 2, kSave = 4, kGather = 8 };
inline constexpr std::uint32_t kEnds = kStopped | kFailed;

// What any thread or signal handler may ask for.
struct Requests {
  std::atomic<bool> stop{false}, save{false};
};

// What a running thread shows to the others.
struct alignas(128) Gauge {
  // For the owner; relaxed, because nothing else depends on these.
  void show(const Partition& partition) noexcept {
    events_.store(partition.executed(), std::memory_order_relaxed);
    pending_.store(partition.pending.size(), std::memory_order_relaxed);
    bytes_.store(partition.bytes(), std::memory_order_relaxed);
    blocked_s_.store(partition.waits.all_s, std::memory_order_relaxed);
  }
  // For any thread.
  std::uint64_t events() const noexcept { return events_.load(std::memory_order_relaxed); }
  std::uint64_t pending() const noexcept { return pending_.load(std::memory_order_relaxed); }
  std::int64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
  double blocked_s() const noexcept { return blocked_s_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> events_{0}, pending_{0};
  std::atomic<std::int64_t> bytes_{0};
  std::atomic<double> blocked_s_{0};
};

class Windows;

struct Team {
  Team(const Options& options, World world, Ranks* ranks, Requests& requests);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  unsigned threads() const noexcept { return static_cast<unsigned>(partitions.size()); }
  bool alone() const noexcept { return threads() == 1 && ranks == nullptr; }

  // ---- For thread `thread`, between two pieces of its work.
  // Publishes its numbers; throws Error if over the memory limit; on the first thread: peaks and progress.
  void check_point(unsigned thread, Time now, Time window);
  // Whether stop() was called.
  bool asked_to_stop() const noexcept { return requests.stop.load(std::memory_order_relaxed); }
  // Whether thread `thread` should call all for a checkpoint.
  bool asked_to_save(unsigned thread) const noexcept { return thread == 0 && saver != nullptr && saver->is_due(); }
  // Whether these flags of a barrier ask for one: also when the run is stopped, and never after a failure.
  bool saves(std::uint32_t flags) const noexcept {
    return saver != nullptr && (flags & (kSave | kStopped)) != 0 && (flags & kFailed) == 0;
  }
  // Events between two looks at what the others ask for.
  std::size_t slice(std::size_t most) const noexcept {
    return static_cast<std::size_t>(std::clamp<std::uint64_t>(options.max_simultaneous, 1, most));
  }
  // Does a piece of work and keeps the first exception of each thread until the end.  Returns the flags that tell the
  // other threads of it at the next barrier.
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
  // For all threads together, when every event is in a pending set; incomplete: this thread could not see to that.
  void save(unsigned thread, Time at, bool incomplete);
  // Of real time since the run began, before it was resumed as well.
  double seconds() const noexcept;
  // Where the run ends: at Options::end, or earlier if LPs ask for it.  An LP asks for a time that no thread may come to
  // before it has met the LP's thread, or seen its clock rise, and that orders these: relaxed.
  Time end() const noexcept { return end_.load(std::memory_order_relaxed); }
  void lower_end(Time to) noexcept {
    Time now = end();
    while (to < now && !end_.compare_exchange_weak(now, to, std::memory_order_relaxed)) {}
  }
  // For the first thread: how the run ended, according to the last barrier.
  void conclude(ReducingBarrier::Reduction all);

  Options options;
  World world;
  Ranks* ranks;
  std::vector<std::unique_ptr<Partition>> partitions;  // of this rank
  std::vector<Gauge> gauges;
  ReducingBarrier barrier;
  std::unique_ptr<NullMessageGroup> null_messages;  // if Sync::neighbours
  std::unique_ptr<LoadBoard> load_board;            // if load moves
  std::vector<Windows*> windows;                    // of each thread, if Sync::windows; read by the first one
  std::uint64_t gathered = 0;                       // windows that the first thread has executed for all
  Requests& requests;
  std::unique_ptr<Saver> saver;                  // if there are checkpoints
  std::unique_ptr<Tracer> tracer;                // if there is a trace
  std::unique_ptr<CriticalPath> path;            // if it is measured
  std::unique_ptr<const Checkpoint> checkpoint;  // to go on from, until the LPs have been built
  Before before;
  std::function<void(const Progress&)> on_progress;
  Simulation::Neighbours neighbours;
  std::unique_ptr<Pace> pace;      // if the run keeps one
  std::vector<Injected> injected;  // from outside, so far; first what is replayed

  // ---- Written by the first thread, read by the others after a barrier.
  std::chrono::steady_clock::time_point began;  // when the LPs had been built
  std::uint64_t peak_pending = 0;
  std::size_t peak_bytes = 0;
  Time reached = 0;
  bool stopped = false, failed = false;
  std::unique_ptr<Exchange> exchange;

 private:
  void look_at_all(Time now, Time window);
  std::atomic<Time> end_;
  std::chrono::steady_clock::time_point next_progress_;
};

// What each thread of a run does after its LPs are built.
void run_windows(Team& team, unsigned thread);
void run_neighbours(Team& team, unsigned thread);

}  // namespace pdes

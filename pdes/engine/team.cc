#include "engine/team.h"

#include <algorithm>
#include <string>

namespace pdes {
namespace {

// Threads that share CPUs with other ranks should not keep them busy by polling.
unsigned cpus_of(const Ranks& ranks) { return std::max(1u, static_cast<unsigned>(ranks.cpus())); }

}  // namespace

Team::Team(const Options& how, World all, Ranks* others, Requests& asked)
    : options(how),
      world(std::move(all)),
      ranks(others),
      gauges(how.threads),
      barrier(how.threads, others == nullptr ? allowed_cpus() : cpus_of(*others)),
      windows(how.threads),
      requests(asked),
      end_(world.end) {
  if (options.measure_path) path = std::make_unique<CriticalPath>(world.lp_count);
  auto rank_count = ranks == nullptr ? 1u : static_cast<unsigned>(ranks->count());
  for (unsigned i = 0; i < how.threads; ++i) {
    partitions.push_back(std::make_unique<Partition>(world, options, world.first_partition + i, rank_count * how.threads));
    partitions.back()->waits.on_s.resize(how.threads);
    partitions.back()->path = path.get();
    partitions.back()->closely = path != nullptr || !options.trace.empty();
  }
  if (ranks != nullptr) exchange = std::make_unique<Exchange>(*this, *ranks);
  if (options.sync == Sync::neighbours) null_messages = std::make_unique<NullMessageGroup>(how.threads);
  if (options.sync == Sync::windows && (world.lps_travel || (options.balance != Balance::off && how.threads > 1)))
    load_board = std::make_unique<LoadBoard>(world, how.threads, world.lps_travel, rank_count);
  if (!options.checkpoint.empty()) saver = std::make_unique<Saver>(*this, requests.save);
  before.executed_by_type.resize(world.types.size());
}

// Blocks of the private free lists travel between threads, and so do LPs, so all blocks are freed before the first list, and
// LPs destroyed before the memory of the first.
Team::~Team() {
  partitions.front()->destroy_lps();
  for (auto& partition : partitions) partition->discard_events();
}

void Team::save(unsigned thread, Time at, bool incomplete) {
  saver->take(thread, incomplete);
  barrier.arrive_and_reduce(thread, {kNever, 0}, &partitions[thread]->waits);
  if (thread == 0) saver->write(at);
}

double Team::seconds() const noexcept {
  return before.wall_s + std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

void Team::conclude(ReducingBarrier::Reduction all) {
  stopped = (all.flags & kStopped) != 0;
  failed = (all.flags & kFailed) != 0;
  reached = std::min(all.least, end());
}

void Team::check_point(unsigned thread, Time now, Time window) {
  Partition& own = *partitions[thread];
  own.adapt_memory();
  gauges[thread].show(own);
  if (options.max_memory > 0) {
    std::int64_t bytes = 0;
    std::uint64_t pending = 0;
    for (const Gauge& gauge : gauges) {
      bytes += gauge.bytes();
      pending += gauge.pending();
    }
    if (bytes > static_cast<std::int64_t>(options.max_memory))
      throw Error("memory limit reached at time " + std::to_string(now) + ": " + std::to_string(pending) +
                  " pending events and their queues take " + std::to_string(bytes) + " bytes, " +
                  std::to_string(options.max_memory) + " are allowed");
  }
  if (thread == 0) look_at_all(now, window);
}

void Team::look_at_all(Time now, Time window) {
  std::uint64_t pending = 0, events = 0;
  std::int64_t bytes = 0;
  for (const Gauge& gauge : gauges) {
    pending += gauge.pending();
    bytes += gauge.bytes();
    events += gauge.events();
  }
  for (std::uint64_t executed : before.executed_by_type) events += executed;
  if (tracer != nullptr) tracer->count(pending, static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0)));
  peak_pending = std::max(peak_pending, pending);
  peak_bytes = std::max(peak_bytes, static_cast<std::size_t>(std::max<std::int64_t>(bytes, 0)));
  reached = now;
  if (!on_progress) return;
  auto clock = std::chrono::steady_clock::now();
  if (clock < next_progress_) return;
  next_progress_ = clock + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                               std::chrono::duration<double>(options.progress_interval));
  Progress progress{before.wall_s + std::chrono::duration<double>(clock - began).count(),
                    now,
                    end(),
                    events,
                    window,
                    partitions[0]->windows,
                    {},
                    {},
                    pending,
                    static_cast<std::size_t>(std::max<std::int64_t>(bytes, 0))};
  for (const Gauge& gauge : gauges) {
    progress.blocked_s.push_back(gauge.blocked_s());
    progress.thread_events.push_back(gauge.events());
  }
  on_progress(progress);
}

}  // namespace pdes

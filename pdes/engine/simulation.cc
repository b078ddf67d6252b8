#include "pdes/simulation.h"

#include <cmath>
#include <cstring>
#include <numeric>
#include <thread>

#include "engine/collect_results.h"
#include "engine/cpu_pin.h"
#include "engine/delays.h"
#include "engine/failure_text.h"
#include "engine/owners.h"
#include "engine/team.h"
#include "pdes/metis.h"

namespace pdes {
namespace {

void check(const Options& options) {
  if (!(options.end >= 0) || !std::isfinite(options.end)) throw Error("the end must be a time of 0 or more");
  if (!(options.lookahead >= 0) || !std::isfinite(options.lookahead)) throw Error("the lookahead must be 0 or more");
  if (options.threads == 0) throw Error("a run needs at least one thread");
  if (options.threads > kMaxThreads) throw Error("at most " + std::to_string(kMaxThreads) + " threads");
  if (!(options.checkpoint_every >= 0) || options.checkpoint_every > 1e9)
    throw Error("the time between checkpoints must be from 0 to 1e9 seconds");
  if (options.checkpoint_every > 0 && options.checkpoint.empty()) throw Error("checkpoints need a file");
  if (!(options.pace >= 0) || !std::isfinite(options.pace)) throw Error("the pace must be 0 or more");
  if (options.measure_path && !options.resume.empty())
    throw Error("the longest chain of events is measured from the beginning, not from a checkpoint");
  if (options.lookahead > 0 && !(options.end + options.lookahead > options.end))
    throw Error("the lookahead vanishes beside the end: times near the end cannot tell them apart");
}

class CachesInHand {
 public:
  explicit CachesInHand(EventMemory& memory) noexcept : memory_(memory) { memory_.take_caches(); }
  ~CachesInHand() { memory_.drop_caches(); }
  CachesInHand(const CachesInHand&) = delete;
  CachesInHand& operator=(const CachesInHand&) = delete;

 private:
  EventMemory& memory_;
};

}  // namespace

struct Simulation::Inside {
  Options options;
  World world;
  const char* event_list = nullptr;
  Neighbours neighbours;
  Partitioner partitioner = metis_partitioner();
  std::function<void(const Progress&)> on_progress;
  std::function<void(const Saved&)> on_save;
  std::function<std::vector<std::byte>()> save_elsewhere;
  std::function<void(std::span<const std::byte>)> load_elsewhere;
  Requests requests;
  Outside outside;
  std::vector<Injected> replayed;
  bool has_run = false;
  Result result;
};

Simulation::Simulation(Options options) : inside_(std::make_unique<Inside>()) {
  check(options);
  inside_->options = options;
}

Simulation::~Simulation() = default;
const Options& Simulation::options() const noexcept { return inside_->options; }
LpId Simulation::lp_count() const noexcept { return inside_->world.lp_count; }
void Simulation::set_neighbours(Neighbours each) { inside_->neighbours = std::move(each); }
void Simulation::set_partitioner(Partitioner how) { inside_->partitioner = std::move(how); }
void Simulation::replay(std::vector<Injected> events) { inside_->replayed = std::move(events); }
void Simulation::on_progress(std::function<void(const Progress&)> call) { inside_->on_progress = std::move(call); }
void Simulation::on_save(std::function<void(const Saved&)> call) { inside_->on_save = std::move(call); }
void Simulation::on_checkpoint(std::function<std::vector<std::byte>()> save,
                               std::function<void(std::span<const std::byte>)> load) {
  inside_->save_elsewhere = std::move(save);
  inside_->load_elsewhere = std::move(load);
}
void Simulation::stop() noexcept { inside_->requests.stop.store(true, std::memory_order_relaxed); }
void Simulation::save() noexcept { inside_->requests.save.store(true, std::memory_order_relaxed); }
const Result& Simulation::partial() const noexcept { return inside_->result; }

bool Simulation::inject(Injected event) {
  if (!(inside_->options.pace > 0)) throw Error("a run takes events from outside only if it keeps a pace");
  if (event.to >= lp_count())
    throw Error("an event from outside is for LP " + std::to_string(event.to) + ", which does not exist");
  if (event.priority > kLastPriority)
    throw Error("an event from outside has a priority above " + std::to_string(kLastPriority));
  return inside_->outside.give(std::move(event));
}

LpId Simulation::add_class(LpClass added, std::vector<EventType> types, const char* list) {
  World& world = inside_->world;
  if (inside_->event_list != nullptr && inside_->event_list != list)
    throw Error(added.name + " has another list of event types than the LPs before it");
  if (added.count > kMaxLps - world.lp_count) throw Error("at most " + std::to_string(kMaxLps) + " LPs");
  inside_->event_list = list;
  world.types = std::move(types);
  added.first = world.lp_count;
  world.lp_count += added.count;
  LpId first = added.first;
  if (added.count > 0) world.classes.push_back(std::move(added));
  return first;
}

namespace {

World prepared(World world, const Options& options, const Simulation::Neighbours& neighbours, const Partitioner& partitioner,
               Ranks* ranks) {
  auto rank_count = ranks == nullptr ? 1u : static_cast<unsigned>(ranks->count());
  unsigned partitions = options.threads * rank_count;
  if (world.lp_count == 0) throw Error("there are no LPs");
  if (partitions > kMaxThreads) throw Error("at most " + std::to_string(kMaxThreads) + " threads on all ranks");
  if (partitions > 1 && !(options.lookahead > 0)) throw Error("more than one thread or rank needs a lookahead above 0");
  if (options.pace > 0 && (rank_count > 1 || options.sync == Sync::neighbours))
    throw Error("a pace is kept by windows, on threads of one rank");
  if (options.measure_path && rank_count > 1) throw Error("the longest chain of events is measured on one rank");
  if (options.sync == Sync::neighbours && rank_count > 1)
    throw Error("neighbour synchronisation works on threads of one rank; with several ranks use windows");
  if (options.partitioning == Partitioning::graph && !neighbours)
    throw Error("there is no graph to divide among threads: every LP may send to every other");
  if (!options.checkpoint.empty() || !options.resume.empty())
    for (const LpClass& of : world.classes)
      if (of.saving.archive == nullptr) throw Error("LPs of class " + of.name + " cannot be saved: " + of.saving.why_not);
  world.lps_travel = options.balance == Balance::ranks && rank_count > 1;
  if (world.lps_travel)
    for (const LpClass& of : world.classes)
      if (of.saving.archive == nullptr)
        throw Error("LPs of class " + of.name + " cannot move to other ranks: " + of.saving.why_not);
  world.end = options.end;
  world.lookahead = options.lookahead;
  world.seed = options.seed;
  world.generator = options.generator;
  world.ties = options.ties;
  world.first_partition = ranks == nullptr ? 0 : static_cast<unsigned>(ranks->rank()) * options.threads;
  if (partitions > 1) world.owner = owners(options, world.lp_count, partitions, neighbours, partitioner, ranks);
  world.lps = std::make_unique<Lp*[]>(world.lp_count);
  return world;
}

void read_checkpoint(Team& team, std::vector<std::byte> file) {
  const Options& options = team.options;
  team.checkpoint = std::make_unique<const Checkpoint>(std::move(file), options.resume, team.world, options.model);
  team.lower_end(team.checkpoint->before.end);
}

using Load = std::function<void(std::span<const std::byte>)>;

void load_elsewhere(const Checkpoint& from, const Load& load) {
  if (!load) {
    if (from.elsewhere.empty()) return;
    throw Error(from.path + " is of another simulation: it has more than LPs and events");
  }
  try {
    load(from.elsewhere);
  } catch (...) { throw Error(from.path + " cannot be resumed: " + failure_text()); }
}

void open_files_here(Team& team, unsigned rank, const Load& load) {
  const Options& options = team.options;
  if (rank == 0 && !options.checkpoint.empty()) try_checkpoint_file(options.checkpoint);
  if (rank == 0 && !options.resume.empty()) {
    read_checkpoint(team, read_file(options.resume));
    team.before = team.checkpoint->before;
    load_elsewhere(*team.checkpoint, load);
  }
  if (!options.trace.empty()) team.tracer = std::make_unique<Tracer>(options.trace, team.threads(), rank, team.world);
}

// The first rank opens and reads for all; if it cannot, none starts.
void open_files(Team& team, const Load& load) {
  const Options& options = team.options;
  if (options.checkpoint.empty() && options.resume.empty() && options.trace.empty()) return;
  if (team.ranks == nullptr) return open_files_here(team, 0, load);
  const auto rank = static_cast<unsigned>(team.ranks->rank());
  std::vector<std::byte> message(1);
  std::exception_ptr failure;
  try {
    open_files_here(team, rank, load);
    message[0] = std::byte{true};
    if (team.checkpoint != nullptr)
      message.insert(message.end(), team.checkpoint->file.begin(), team.checkpoint->file.end());
  } catch (...) {
    failure = std::current_exception();
    message.assign(1, std::byte{false});
  }
  team.ranks->broadcast(message);
  if (failure != nullptr) std::rethrow_exception(failure);
  if (message.empty() || message[0] != std::byte{true}) throw OtherRankFailed("the run cannot start on the first rank");
  if (rank == 0 || options.resume.empty()) return;
  message.erase(message.begin());
  read_checkpoint(team, std::move(message));
}

void check_replayed(const World& world, const Options& options, const std::vector<Injected>& events) {
  if (events.empty() && options.pace == 0) return;
  if (world.lp_count > kOutside) throw Error("with events from outside, at most " + std::to_string(kOutside) + " LPs");
  if (!events.empty() && !options.resume.empty())
    throw Error("events are replayed from the beginning, not from a checkpoint");
  for (const Injected& event : events)
    if (event.to >= world.lp_count || event.type >= world.types.size() || event.priority > kLastPriority ||
        !(event.time >= 0 && event.time < kNever) || event.payload.size() != world.types[event.type].size)
      throw Error("what is replayed came from another model");
}

void replay(Team& team, Partition& own) {
  for (std::size_t i = 0; i < team.injected.size(); ++i) {
    const Injected& event = team.injected[i];
    if (!team.world.owner.empty() && team.world.owner[event.to] != own.number) continue;
    if (event.time < team.world.end) own.pending.push(own.from_outside(event, i));
    else ++own.counts.dropped;
  }
}

// However a run ends, nobody waits for it to take what is given from then on.
class Closing {
 public:
  explicit Closing(Outside& outside) noexcept : outside_(outside) {}
  ~Closing() { outside_.close(); }
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;

 private:
  Outside& outside_;
};

void run_thread(Team& team, unsigned thread) {
  Partition& own = *team.partitions[thread];
  CpuPin place(team.world.first_partition + thread, team.options.pin);
  CachesInHand in_hand(own.memory);
  std::uint32_t flags = team.attempt(thread, [&] {
    own.build(team.checkpoint.get());
    replay(team, own);
  });
  team.lower_end(own.asked_end);
  // With ranks, the other ranks learn of it at the end of the first window.
  if (team.barrier.arrive_and_reduce(thread, {0, flags}).flags != 0 && team.ranks == nullptr) {
    if (thread == 0) team.failed = true;
    return;
  }
  auto began = std::chrono::steady_clock::now();
  if (thread == 0) {
    team.began = began;
    team.checkpoint.reset();
  }
  if (team.options.sync == Sync::neighbours && !team.alone()) run_neighbours(team, thread);
  else run_windows(team, thread);
  own.total_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

[[noreturn]] void rethrow(const std::exception_ptr& failure, const std::string& at) {
  try {
    std::rethrow_exception(failure);
  } catch (const Misdeed& misdeed) { throw misdeed.at(at); }
}

}  // namespace

Result Simulation::run(Ranks* ranks) {
  if (std::exchange(inside_->has_run, true)) throw Error("a simulation runs once");
  const Closing at_the_end(inside_->outside);
  World world = prepared(std::move(inside_->world), inside_->options, inside_->neighbours, inside_->partitioner, ranks);
  Team team(inside_->options, std::move(world), ranks, inside_->requests);
  open_files(team, inside_->load_elsewhere);
  if (team.saver != nullptr) {
    team.saver->on_save = inside_->on_save;
    team.saver->save_elsewhere = inside_->save_elsewhere;
  }
  team.on_progress = inside_->on_progress;
  team.neighbours = inside_->neighbours;
  team.injected = std::move(inside_->replayed);
  check_replayed(team.world, team.options, team.injected);
  if (team.options.pace > 0) team.pace = std::make_unique<Pace>(team, inside_->outside);
  {
    std::vector<std::jthread> others;
    for (unsigned i = 1; i < team.threads(); ++i) others.emplace_back([&team, i] { run_thread(team, i); });
    run_thread(team, 0);
  }
  std::exception_ptr unreported;
  inside_->result = collect_results(team, unreported);
  Result& result = inside_->result;
  if (team.tracer != nullptr) result.trace_error = team.tracer->finish(ranks, result.trace_lost);
  for (auto& partition : team.partitions) {
    if (partition->failure == nullptr) continue;
    result.failed_at = partition->failed_at;
    rethrow(partition->failure, result.failed_at);
  }
  if (unreported != nullptr) rethrow(unreported, result.failed_at);
  if (team.failed) throw OtherRankFailed("the run failed on another rank");
  return inside_->result;
}

}  // namespace pdes

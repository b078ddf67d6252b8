#include "engine/collect_results.h"

#include <algorithm>
#include <cstring>

#include "engine/append.h"
#include "engine/delays.h"
#include "engine/team.h"

namespace pdes {
namespace {

// What is summed over ranks, as bytes.
struct Sums {
  std::uint64_t failed = 0;  // ranks that have no statistics
  std::uint64_t lps_digest = 0;
  Activity activity;
  std::uint64_t peak_bytes = 0, peak_pending = 0;
};

void add(Activity& sum, const Activity& other) noexcept {
  sum.events += other.events;
  sum.sent += other.sent;
  sum.crossed += other.crossed;
  sum.dropped += other.dropped;
  sum.windows = std::max(sum.windows, other.windows);
  sum.working_s += other.working_s;
  sum.blocked_s += other.blocked_s;
  sum.late += other.late;
  sum.retunings += other.retunings;
  sum.cancelled += other.cancelled;
  sum.parted += other.parted;
  sum.emigrated += other.emigrated;
  sum.made += other.made;
  sum.ended += other.ended;
  sum.undelivered += other.undelivered;
}

Activity activity_of(const Partition& partition) {
  return {partition.executed(),       partition.counts.sent,    partition.counts.crossed,
          partition.counts.dropped,   partition.windows,        std::max(0.0, partition.total_s - partition.waits.all_s),
          partition.waits.all_s,      partition.pending.late(), partition.pending.retunings(),
          partition.counts.cancelled, partition.parted,         partition.emigrated,
          partition.counts.made,      partition.counts.ended,   partition.counts.undelivered};
}

// Commutative over LPs: it does not matter which thread runs an LP.
std::uint64_t digest_of_lps(const Team& team) {
  std::uint64_t digest = 0;
  for (LpId id = 0; id < team.world.lp_count; ++id)
    if (const Lp* lp = team.world.lps[id]) digest += mix(lp->digest ^ mix(id));
  return digest;
}

// failed_at: which of them could not report.
void ask_lps(Team& team, Report& statistics, std::string& failed_at) {
  LpId id = 0;
  try {
    for (; id < team.world.lp_count; ++id) {
      const Lp* lp = team.world.lps[id];
      const LpClass& of = team.world.class_of(id);
      if (lp == nullptr || lp->handlers == of.vacant_handlers) continue;
      statistics.asks(id);
      of.report(lp->object(), statistics);
    }
  } catch (...) {
    failed_at = team.partitions[0]->name_of(id) + ", at the end";
    throw;
  }
}

// By name, because which thread or rank an LP ended on, and when, must not show.
void add_ended(Team& team, Report& statistics) {
  Report ended;
  if (team.world.first_partition == 0) ended = Report::read(team.before.ended);
  for (auto& partition : team.partitions) ended.merge(partition->ended);
  ended.stand_behind();
  statistics.merge(ended);
}

// What was counted before the run was resumed.
void go_on(const Before& before, Activity& activity, Result& result) {
  for (std::size_t i = 0; i < before.executed_by_type.size(); ++i) {
    result.events_by_type[i] += before.executed_by_type[i];
    result.events_before += before.executed_by_type[i];
  }
  activity.events += result.events_before;
  activity.sent += before.counts.sent;
  activity.crossed += before.counts.crossed;
  activity.dropped += before.counts.dropped;
  activity.cancelled += before.counts.cancelled;
  activity.made += before.counts.made;
  activity.ended += before.counts.ended;
  activity.undelivered += before.counts.undelivered;
}

class Bytes {
 public:
  template <class T>
  void put(const T* values, std::size_t count) {
    append(bytes_, values, count);
  }
  explicit Bytes(std::vector<std::byte> bytes = {}) : bytes_(std::move(bytes)) {}
  template <class T>
  void get(T* values, std::size_t count) {
    if (bytes_.size() - at_ < count * sizeof(T)) throw Error("a rank sent less than its result");
    if (count > 0) std::memcpy(values, bytes_.data() + at_, count * sizeof(T));
    at_ += count * sizeof(T);
  }
  std::vector<std::byte> rest() const { return {bytes_.begin() + static_cast<std::ptrdiff_t>(at_), bytes_.end()}; }
  const std::vector<std::byte>& all() const noexcept { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
  std::size_t at_ = 0;
};

std::vector<std::vector<std::byte>> gather(Ranks& ranks, const Result& result, const Sums& sums, const DelayRecorder& delays,
                                           LinkRecorder::Named& links) {
  Bytes mine;
  mine.put(&sums, 1);
  mine.put(&delays, 1);
  const std::vector<std::byte> named = to_bytes(links);
  const std::size_t named_size = named.size();
  mine.put(&named_size, 1);
  mine.put(named.data(), named_size);
  mine.put(result.events_by_type.data(), result.events_by_type.size());
  std::vector<std::byte> report = result.statistics.write();
  mine.put(report.data(), report.size());
  return ranks.gather(mine.all());
}

// On the first rank, which alone has what the others sent.
void merge(std::vector<std::vector<std::byte>> all, Result& result, Sums& sums, DelayRecorder& delays,
           LinkRecorder::Named& links) {
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    Bytes theirs(std::move(all[rank]));
    Sums other;
    DelayRecorder other_delays;
    std::vector<std::uint64_t> by_type(result.events_by_type.size());
    theirs.get(&other, 1);
    theirs.get(&other_delays, 1);
    std::size_t size = 0;
    theirs.get(&size, 1);
    std::vector<std::byte> other_named(size);
    theirs.get(other_named.data(), size);
    LinkRecorder::Named other_links;
    from_bytes(other_named, other_links);
    for (const auto& [link, seen] : other_links) links[link].add(seen);
    theirs.get(by_type.data(), by_type.size());
    sums.failed += other.failed;
    sums.lps_digest += other.lps_digest;
    add(sums.activity, other.activity);
    sums.peak_bytes += other.peak_bytes;
    sums.peak_pending += other.peak_pending;
    delays.merge(other_delays);
    for (std::size_t i = 0; i < by_type.size(); ++i) result.events_by_type[i] += by_type[i];
    result.statistics.merge(Report::read(theirs.rest()));
  }
}

// Whoever could not go on has taken part until here, and all learn of it: nobody is left waiting.
bool failed_anywhere(Ranks& ranks, bool here) {
  std::vector<std::byte> failed{std::byte{here}};
  ranks.broadcast(failed);
  return failed.at(0) == std::byte{true};
}

}  // namespace

Result collect_results(Team& team, std::exception_ptr& failure) {
  Result result;
  Sums sums;
  DelayRecorder delays;
  LinkRecorder::Named links;
  result.events_by_type.resize(team.world.types.size());
  for (const EventType& type : team.world.types) result.type_names.push_back(type.name);
  for (auto& partition : team.partitions) {
    result.threads.push_back(activity_of(*partition));
    add(sums.activity, result.threads.back());
    result.waited_on.push_back(partition->waits.on_s);
    result.wall_s = std::max(result.wall_s, partition->total_s);
    if (partition->delays != nullptr) {
      delays.merge(*partition->delays);
      partition->links->add_to(links, team.world);
    }
    for (std::size_t i = 0; i < partition->executed_by_type.size(); ++i)
      result.events_by_type[i] += partition->executed_by_type[i];
  }
  sums.peak_bytes = team.peak_bytes;
  sums.peak_pending = team.peak_pending;
  if (team.world.first_partition == 0) go_on(team.before, sums.activity, result);
  result.statistics.ends_at(team.reached);
  sums.lps_digest = digest_of_lps(team);
  const auto attempt = [&](auto&& work) {
    try {
      work();
    } catch (...) {
      if (failure == nullptr) failure = std::current_exception();
      sums.failed = 1;
    }
  };
  attempt([&] {
    ask_lps(team, result.statistics, result.failed_at);
    add_ended(team, result.statistics);
  });
  if (team.ranks != nullptr) {
    auto all = gather(*team.ranks, result, sums, delays, links);
    attempt([&] { merge(std::move(all), result, sums, delays, links); });
    if (failed_anywhere(*team.ranks, sums.failed > 0)) sums.failed = 1;
  }
  if (sums.failed > 0) {
    team.failed = true;
    result.statistics = Report();  // those of some LPs are no answer
    result.statistics.ends_at(team.reached);
  }
  result.statistics.sort();
  result.wall_s += team.before.wall_s;
  result.digest = mix(sums.lps_digest ^ result.statistics.digest());
  result.total = sums.activity;
  result.peak_bytes = sums.peak_bytes;
  result.peak_pending = sums.peak_pending;
  result.reached = team.reached;
  result.stopped = team.stopped;
  result.ended_by_model = !team.stopped && !team.failed && team.end() < team.world.end && team.reached == team.end();
  result.bucket_width = team.partitions[0]->pending.width();
  result.blocks = team.partitions[0]->memory.kind();
  result.delays = delays.result();
  result.delays.links = LinkRecorder::sorted(links);
  if (team.path != nullptr && team.path->length() > 0) {
    const auto length = team.path->length();
    result.path = {length, team.partitions[0]->name_of(team.path->last()),
                   static_cast<double>(result.total.events) / static_cast<double>(length)};
  }
  result.gathered = team.gathered;
  result.injected = std::move(team.injected);
  if (team.saver != nullptr) result.checkpoints = team.saver->written();
  return result;
}

}  // namespace pdes

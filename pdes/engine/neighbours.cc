// Asynchronous conservative synchronisation (Chandy and Misra 1979, Bryant 1977) in shared memory: instead of sending
// null messages, each thread has a clock that others read.  A thread executes what lies less than the lookahead above
// the clocks of those that may send to it.
//
// One round of a thread:
//   read     the clocks, then the channels: what is sent after the clock was read lies beyond the bound
//   execute  a few events, so that others soon learn of them
//   publish  what was sent, then the own clock
//
// Threads would advance only by the lookahead through time without events.  A thread that has done so for long calls all
// to a barrier, which finds the earliest event anywhere and so raises all clocks.  The run also ends at such a barrier.
#include "engine/neighbours.h"

#include <algorithm>
#include <optional>

#include "engine/cpu_pin.h"
#include "engine/team.h"

namespace pdes {
namespace {

constexpr std::size_t kSlice = 32;         // events between two reads of the clocks
constexpr std::uint64_t kLookEvery = 128;  // rounds between two check points
constexpr double kMaxPatience = 1024;      // lookaheads

class Follower {
 public:
  Follower(Team& team, unsigned thread)
      : team_(team),
        shared_(*team.null_messages),
        thread_(thread),
        own_(*team.partitions[thread]),
        clock_(shared_.clocks[thread]),
        parker_(shared_.parkers[thread]) {}

  void run() {
    for (ReducingBarrier::Reduction all = begin();; all = meet()) {
      if (team_.saves(all.flags)) save(all.least);
      if ((all.flags & kEnds) != 0 || !(all.least < team_.end())) break;
      jump(all.least);
      while (!shared_.is_called(met_)) round();
    }
  }

 private:
  struct Source {
    std::uint32_t thread;
    const Clock* clock;
    Channel<Key>* channel;
  };
  struct Sink {
    std::vector<Key>* outbox;
    Channel<Key>* channel;
    Parker* parker;
  };

  // A barrier has already accounted for what LPs sent when they started, to any LP and for any time.
  ReducingBarrier::Reduction begin() {
    attempt([&] {
      own_.send_into(1);
      for (auto& other : team_.partitions) own_.receive(other->outboxes[0][thread_]);
      own_.pending.start();
      declare();
    });
    ReducingBarrier::Reduction all = reduce();
    for (unsigned from = 0; from < team_.threads(); ++from)
      if (auto& row = shared_.to[from]; !row.empty() && row[thread_] != nullptr)
        sources_.push_back({from, &shared_.clocks[from], row[thread_].get()});
    return all;
  }

  // Makes channels to the threads of all LPs that ours may send to.
  void declare() {
    own_.reaches.assign(team_.threads(), false);
    for (LpId id = 0; id < team_.world.lp_count; ++id) {
      if (team_.world.owner[id] != thread_) continue;
      if (team_.neighbours) team_.neighbours(id, [&](LpId to) { reach(id, to); });
      else own_.reaches.assign(team_.threads(), true);
    }
    auto& row = shared_.to[thread_];
    row.resize(team_.threads());
    for (unsigned to = 0; to < team_.threads(); ++to) {
      if (to == thread_ || !own_.reaches[to]) continue;
      row[to] = std::make_unique<Channel<Key>>();
      sinks_.push_back({&own_.outboxes[1][to], row[to].get(), &shared_.parkers[to]});
    }
  }

  void reach(LpId from, LpId to) {
    check_neighbour(from, to, team_.world.lp_count);
    own_.reaches[team_.world.owner[to]] = true;
  }

  void round() {
    const Source* slowest = nullptr;
    const Time seen = slowest_clock(slowest);
    const Time bound = std::min(std::max(seen, floor_) + team_.world.lookahead, team_.end());
    const std::uint64_t before = own_.executed();
    bool done = true;
    attempt([&] {
      if (rounds_++ % kLookEvery == 0) look();
      drain();
      if (!burst_) burst_.emplace(team_.tracer.get(), thread_, own_);
      done = own_.run_until(bound, slice_);
      team_.lower_end(own_.asked_end);
      if (!done) own_.watch_time(slice_, team_.options.max_simultaneous);
      publish();
    });
    if (team_.asked_to_stop()) flags_ |= kStopped;
    if (flags_ != 0) return shared_.call(met_);
    raise(done ? bound : own_.now);
    if (own_.executed() != before) busy_ = clock_.own();
    if (!done) return;
    if (clock_.own() - busy_ > patience_ * team_.world.lookahead) return shared_.call(met_);
    wait(slowest);
  }

  Time slowest_clock(const Source*& slowest) const noexcept {
    Time least = kNever;
    for (const Source& source : sources_) {
      const Time clock = source.clock->read();
      if (clock >= least) continue;
      least = clock;
      slowest = &source;
    }
    return least;
  }

  void raise(Time time) noexcept {
    if (!(time > clock_.own())) return;
    clock_.raise(time);
    ++own_.windows;
    for (const Sink& sink : sinks_) sink.parker->raised(thread_, time);
  }

  // Waits until the slowest clock has reached ours: then there is work for a while.  The thread with the slowest clock
  // of all never waits.
  void wait(const Source* slowest) {
    const bool ended = clock_.own() >= team_.end();
    if (ended && shared_.min_clock() >= team_.end()) return shared_.call(met_);
    const Time wanted = clock_.own();
    const auto news = [&] { return shared_.is_called(met_) || (!ended && slowest->clock->read() >= wanted); };
    if (news()) return;
    const Stopwatch watch(&own_.waits, ended ? kNobodyInParticular : slowest->thread);
    burst_.reset();
    const Tracer::Scope waiting(team_.tracer.get(), thread_);
    if (spin_until(team_.barrier.spin_policy(), news)) return;
    parker_.prepare_to_park(ended ? Parker::kNobody : slowest->thread, wanted);
    if (news()) parker_.cancel();
    else parker_.park();
    if (team_.barrier.spin_policy().has_home) CpuPin::return_home();
    if (thread_ == 0) rounds_ = 0;  // it may have been woken to report progress
  }

  // The first thread reports progress, even if it has nothing else to do.
  void look() {
    team_.check_point(thread_, shared_.min_clock(), 0);
    burst_.reset();
    if (thread_ != 0) shared_.parkers[0].unpark();
    else if (team_.asked_to_save(thread_)) flags_ |= kSave;
  }

  void drain() {
    for (const Source& source : sources_) source.channel->drain([&](const Key& key) { own_.pending.push(key); });
  }

  // Backwards, so that an exception leaves every event in one place only; the order is irrelevant.
  void publish() {
    for (const Sink& sink : sinks_) {
      if (sink.outbox->empty()) continue;
      for (; !sink.outbox->empty(); sink.outbox->pop_back()) sink.channel->push(sink.outbox->back());
      sink.channel->publish();
    }
  }

  // When all have published and passed a barrier, all that is in transit can be received; then least covers all events.
  ReducingBarrier::Reduction meet() {
    attempt([&] { publish(); });
    team_.barrier.arrive_and_reduce(thread_, {0, 0}, &own_.waits);
    attempt([&] { drain(); });
    ++met_;
    return reduce();
  }

  // Threads have come to different times; all that matters is that every event is in a pending set.
  void save(Time at) {
    flags_ &= ~kSave;
    attempt([&] { team_.save(thread_, at, (flags_ & kFailed) != 0); });
  }

  ReducingBarrier::Reduction reduce() {
    const ReducingBarrier::Reduction mine{own_.pending.lower_bound(), flags_};
    const ReducingBarrier::Reduction all = team_.barrier.arrive_and_reduce(thread_, mine, &own_.waits);
    if (thread_ == 0) team_.conclude(all);
    return all;
  }

  // Barriers are expensive if others are busy, and save much if nobody is.
  void jump(Time least) {
    const bool worth = least - clock_.own() > team_.world.lookahead;
    patience_ = worth ? std::max(patience_ / 2, 1.0) : std::min(patience_ * 2, kMaxPatience);
    floor_ = least;
    raise(least);
    busy_ = clock_.own();
  }

  template <class Work>
  void attempt(Work&& work) noexcept {
    flags_ |= team_.attempt(thread_, work);
  }

  Team& team_;
  NullMessageGroup& shared_;
  const std::uint32_t thread_;
  Partition& own_;
  Clock& clock_;
  Parker& parker_;
  std::vector<Source> sources_;
  std::vector<Sink> sinks_;
  Time floor_ = 0;        // minimum of all clocks at the last barrier
  Time busy_ = 0;         // our clock at the last event
  double patience_ = 16;  // lookaheads to advance by before a barrier
  std::uint64_t rounds_ = 0;
  std::uint32_t met_ = 0, flags_ = 0;
  const std::size_t slice_ = team_.slice(kSlice);
  std::optional<Tracer::Scope> burst_;  // since the last wait
};

}  // namespace

Time NullMessageGroup::min_clock() const noexcept {
  Time least = kNever;
  for (const Clock& clock : clocks) least = std::min(least, clock.read());
  return least;
}

void check_neighbour(LpId from, LpId to, LpId lps) {
  if (to >= lps)
    throw Error("LP " + std::to_string(from) + " has LP " + std::to_string(to) + " as neighbour: there are only " +
                std::to_string(lps) + " LPs");
}

void run_neighbours(Team& team, unsigned thread) { Follower(team, thread).run(); }

}  // namespace pdes

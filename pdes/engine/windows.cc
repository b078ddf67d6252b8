// Conservative windows (YAWNS, Nicol 1993): at a barrier all threads learn the time of the earliest event anywhere, the
// lower bound on time stamps, and then execute what lies less than the lookahead above it: no thread can still send
// anything there.  Time without events is skipped.
//
// One window of a thread:
//   barrier    everybody's earliest time, including what was sent, in one reduction
//   receive    from the outboxes of the last window, which nobody fills now
//   execute    into outboxes of the other parity
// Between the last two LPs may move to other threads, or ranks (engine/balance.h).  Small windows of all may be executed by the
// first thread (engine/gathering.h).
// With ranks, the first thread sends the events for other ranks, with the reduction, before it receives, and then waits for
// theirs; a second barrier tells the threads the result and hands them the arrivals.
#include <algorithm>
#include <optional>

#include "engine/balance.h"
#include "engine/gathering.h"
#include "engine/team.h"

namespace pdes {
namespace {

constexpr std::size_t kSlice = 4096;      // events between two check points
constexpr std::uint64_t kLookEvery = 16;  // windows between two check points

}  // namespace

class Windows {
 public:
  Windows(Team& team, unsigned thread)
      : team_(team), thread_(thread), own_(*team.partitions[thread]), flags_(own_.failure == nullptr ? 0u : kFailed) {
    if (team.load_board != nullptr) balancer_.emplace(team, thread);
    if (thread == 0) gathering_.emplace(team);
    team.windows[thread] = this;
  }

  void run() {
    ReducingBarrier::Reduction all{};
    while (true) {
      if (balancer_) balancer_->tell();
      const std::uint32_t wish = gathering_ && gathering_->wants() ? kGather : 0u;
      all = meet({own_.least(), flags_ | wish});
      window_.reset();
      if (team_.ranks == nullptr) receive();
      else all = receive_with_ranks(all, balances_ranks() && balancer_->looks() ? Beside::loads : Beside::nothing);
      if (team_.pace != nullptr) all = keep_pace(all);
      if (team_.saves(all.flags)) save(all.least);
      if ((all.flags & kEnds) != 0 || !(all.least < team_.end())) break;
      if (balancer_ && balancer_->is_due()) move_load();
      if ((all.flags & kGather) != 0) gather(all.least);
      else execute(bound_of(all.least), all.least, thread_);
    }
    if (thread_ == 0) team_.conclude(all);
  }

 private:
  using Beside = Exchange::Beside;

  ReducingBarrier::Reduction meet(ReducingBarrier::Reduction mine) {
    const Tracer::Scope waiting(team_.tracer.get(), thread_);
    return team_.barrier.arrive_and_reduce(thread_, mine, &own_.waits);
  }

  void receive() {
    unsigned filled = sending_;
    sending_ ^= 1;
    own_.send_into(sending_);
    if (team_.threads() == 1) return;
    attempt([&] {
      for (auto& other : team_.partitions) own_.receive(other->outboxes[filled][own_.number]);
    });
  }

  ReducingBarrier::Reduction receive_with_ranks(ReducingBarrier::Reduction here, Beside beside) {
    if (thread_ == 0) team_.exchange->begin(sending_, here, beside);
    receive();
    ReducingBarrier::Reduction all{kNever, 0};
    if (thread_ == 0) all = team_.exchange->end(own_.waits.all_s);
    all = meet(all);
    attempt([&] { own_.receive(team_.exchange->arrivals(thread_)); });
    return all;
  }

  // As receive_with_ranks, the first thread waits and brings what comes from outside, a second barrier tells the others.
  ReducingBarrier::Reduction keep_pace(ReducingBarrier::Reduction all) {
    if (thread_ == 0) attempt([&] { team_.pace->wait(all); });
    const auto flags = meet({kNever, flags_}).flags;
    attempt([&] { own_.receive(team_.pace->arrivals(thread_)); });
    return {team_.pace->turn().least, all.flags | flags | team_.pace->turn().flags};
  }

  // The first thread executes the windows of all, with caches of its own, until it finds that it should not or something has
  // come up that all must know of.  The others sleep.
  void gather(Time least) {
    team_.barrier.arrive_and_reduce(thread_, {kNever, 0});  // who comes out of it touches nothing, not even its waits
    if (thread_ == 0) {
      for (Windows* each : team_.windows) each->own_.memory.take_caches();
      while (execute_all(least)) meet_for_all();
    }
    meet({kNever, 0});
    own_.memory.take_caches();
  }

  // Whether to go on; if so, with the least time of the next window.
  bool execute_all(Time& least) {
    ++team_.gathered;
    const Time bound = bound_of(least);
    ReducingBarrier::Reduction all{kNever, 0};
    for (Windows* each : team_.windows) {
      // The first one looks at what others ask for, and tells how far the run is, whether or not it has events.
      if (each == this || each->own_.least() < bound) each->execute(bound, least, thread_);
      else ++each->own_.windows;
    }
    for (Windows* each : team_.windows) all = {std::min(all.least, each->own_.least()), all.flags | each->flags_};
    window_.reset();
    least = all.least;
    return all.flags == 0 && least < team_.end() && gathering_->wants();
  }

  // What run() does between two windows.
  void meet_for_all() {
    bool is_due = false;
    for (Windows* each : team_.windows)
      if (each->balancer_) each->balancer_->tell();
    for (Windows* each : team_.windows) each->hand_out();
    for (Windows* each : team_.windows) is_due = each->balancer_ && each->balancer_->is_due();
    if (!is_due) return;
    std::uint32_t failed = 0;
    for (Windows* each : team_.windows) {
      each->attempt([&] { each->balancer_->part(each->sending_); });
      failed |= each->flags_;
    }
    for (Windows* each : team_.windows) each->receive();
    for (Windows* each : team_.windows) {
      each->flags_ |= failed;
      each->attempt([&] { each->balancer_->welcome(); });
    }
  }

  // As receive() on all threads, from this one: seldom do all send in a small window.
  void hand_out() {
    const bool has_sent = own_.min_sent < kNever;
    const unsigned filled = sending_;
    sending_ ^= 1;
    own_.send_into(sending_);
    if (!has_sent) return;
    for (Windows* to : team_.windows) to->attempt([&] { to->own_.receive(own_.outboxes[filled][to->own_.number]); });
  }

  bool balances_ranks() const noexcept { return balancer_ && team_.load_board->between_ranks; }

  // Every event is in a pending set, and is again afterwards.  If that fails on a thread, no other one goes on.
  void move_load() {
    attempt([&] { balancer_->part(sending_); });
    auto all = meet({kNever, flags_});
    if (balances_ranks()) all = receive_with_ranks(all, Beside::lps);
    else receive();
    flags_ |= all.flags & kFailed;
    attempt([&] { balancer_->welcome(); });
  }

  Time bound_of(Time least) const {
    if (team_.pace != nullptr) return team_.pace->turn().bound;
    return team_.alone() ? kNever : least + team_.world.lookahead;
  }

  void save(Time at) {
    flags_ &= ~kSave;
    attempt([&] { team_.save(thread_, at, (flags_ & kFailed) != 0); });
  }

  // A single thread has one window, the whole run.
  Time now(Time lower) const { return team_.alone() ? std::max(lower, own_.now) : lower; }

  // By that thread.
  void execute(Time bound, Time lower, unsigned by) {
    if (flags_ != 0) return;
    bound = std::min(bound, team_.end());
    if (thread_ == 0) window_.emplace(team_.tracer.get(), lower, bound);
    attempt([&] {
      if (!started_) own_.pending.start();
      started_ = true;
      std::optional<Tracer::Scope> burst(std::in_place, team_.tracer.get(), by, own_);
      while (!own_.run_until(bound, slice_)) {
        own_.watch_time(slice_, team_.options.max_simultaneous);
        team_.check_point(thread_, now(lower), bound - lower);
        burst.emplace(team_.tracer.get(), by, own_);
        if (team_.asked_to_stop() || team_.asked_to_save(thread_)) break;
      }
      team_.lower_end(own_.asked_end);
      if (++own_.windows % kLookEvery == 1) team_.check_point(thread_, now(lower), bound - lower);
    });
    if (team_.asked_to_stop()) flags_ |= kStopped;
    if (team_.asked_to_save(thread_)) flags_ |= kSave;
  }

  template <class Work>
  void attempt(Work&& work) noexcept {
    flags_ |= team_.attempt(thread_, work);
  }

  Team& team_;
  const unsigned thread_;
  Partition& own_;
  std::uint32_t flags_;
  const std::size_t slice_ = team_.slice(kSlice);
  unsigned sending_ = 0;  // parity of the outboxes that are filled now
  bool started_ = false;
  std::optional<Tracer::Scope> window_;
  std::optional<Balancer> balancer_;    // if load moves
  std::optional<Gathering> gathering_;  // on the first thread
};

void run_windows(Team& team, unsigned thread) { Windows(team, thread).run(); }

}  // namespace pdes

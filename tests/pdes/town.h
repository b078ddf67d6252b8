// LPs whose load moves round: some of them get ten times as many events as the others, and which ones changes.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "pdes/mpi.h"
#include "pdes/pdes.h"

namespace pdes::test {

struct Hop {};
struct Chatter {
  std::uint64_t words[9];
};
struct Alarm {};

constexpr LpId kNoLp = ~LpId{0};

struct Town {
  LpId lps = 800, hot = 100;  // these get ten times as many hops as the others
  double turn = 80;           // in which they move round
  double ends = kNever;       // LPs end the run a little later
  double fails = kNever;
  LpId cannot_be_saved = kNoLp;
};

inline std::atomic<std::int64_t> g_alive, g_until_stop;
inline std::atomic<Simulation*> g_running;

// Owns memory, has timers, talks to itself.
class Walker {
 public:
  using Context = pdes::Context<Hop, Chatter, Cancellable<Alarm>>;
  Walker(const Town& town, LpId id) : town_(town), id_(id), name_("walker " + std::to_string(id)) { ++g_alive; }
  ~Walker() { --g_alive; }
  Walker(const Walker&) = delete;
  Walker& operator=(const Walker&) = delete;

  void start(Context& context) {
    for (int i = 0; i < 4; ++i) context.send_self(context.random().exponential(1), Hop{});
  }
  void on(Context& context, const Hop&) {
    if (g_until_stop.fetch_sub(1, std::memory_order_relaxed) == 1) g_running.load()->stop();
    auto random = context.random();
    context.set(alarms_[random.integer(2)], random.exponential(0.5), Alarm{});
    if (random.chance(0.1)) context.send_self(0, Chatter{{seen_.size()}});
    context.send(next(context), context.lookahead() + random.exponential(1 - context.lookahead()), Hop{});
  }
  void on(Context& context, const Chatter& chatter) {
    if (seen_.size() > 8) seen_.clear();
    seen_.push_back(chatter.words[0] * 31 + context.random().integer(9));
  }
  void on(Context& context, const Alarm&) {
    ++alarms_seen_;
    if (context.now() > town_.ends) context.end_after(1);
    if (context.now() > town_.fails) throw Error("it had to be");
  }
  void report(Report& report) const {
    for (std::uint64_t number : seen_) report.count(name_.substr(0, 8), static_cast<std::int64_t>(number % 1000));
    report.count("alarms", alarms_seen_);
  }
  template <class A>
  void serialize(A& archive) {
    if (id_ == town_.cannot_be_saved && !archive.reads()) throw Error("it has no suitcase");
    archive(seen_, alarms_, alarms_seen_);
  }

 private:
  LpId next(Context& context) const {
    auto random = context.random();
    const double turns = context.now() / town_.turn;
    const auto first = static_cast<LpId>((turns - std::floor(turns)) * town_.lps);
    const bool inside = random.chance(10.0 * town_.hot / (9.0 * town_.hot + town_.lps));
    const auto from_first = inside ? random.integer(town_.hot) : town_.hot + random.integer(town_.lps - town_.hot);
    return static_cast<LpId>((first + from_first) % town_.lps);
  }

  const Town& town_;
  LpId id_;
  std::string name_;
  std::vector<std::uint64_t> seen_;
  std::array<Timer, 2> alarms_;
  std::int64_t alarms_seen_ = 0;
};

inline Options basic(unsigned threads, Balance balance = Balance::threads) {
  return {
      .end = 40, .lookahead = 0.2, .threads = threads, .balance = balance, .balance_by = BalanceBy::events, .model = "town"};
}

inline Result run_town(const Options& how, const Town& town = {}, std::int64_t stop_after = 0, Ranks* ranks = nullptr) {
  Simulation simulation(how);
  simulation.add<Walker>(town.lps, [&town](LpId id) { return Walker(town, id); });
  if (ranks == nullptr) {
    g_until_stop = stop_after;
    g_running = &simulation;
  }
  return simulation.run(ranks);
}

// The busiest thread's events beside the mean.
inline double skew(const Result& result) {
  std::uint64_t most = 0, all = 0;
  for (const Activity& thread : result.threads) {
    most = std::max(most, thread.events);
    all += thread.events;
  }
  return static_cast<double>(most * result.threads.size()) / static_cast<double>(all);
}

}  // namespace pdes::test

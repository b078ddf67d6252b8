#include "engine/pace.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/team.h"

namespace pdes {
namespace {

constexpr double kLook = 0.02;  // seconds between two looks at who wants the run to stop

}  // namespace

bool Outside::give(Injected event) {
  {
    std::lock_guard guard(mutex_);
    if (closed_) return false;
    waiting_.push_back(std::move(event));
  }
  given_.notify_one();
  return true;
}

std::vector<Injected> Outside::wait_for(double seconds) {
  std::unique_lock lock(mutex_);
  given_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return !waiting_.empty(); });
  return std::exchange(waiting_, {});
}

void Outside::close() {
  std::lock_guard guard(mutex_);
  closed_ = true;
}

Pace::Pace(Team& team, Outside& outside) : team_(team), outside_(outside), arrivals_(team.threads()) {}

void Pace::begin(Time first) {
  began_ = true;
  clock_ = Clock::now();
  if (!team_.options.resume.empty()) origin_ = floor_ = std::min(first, team_.end());
}

Time Pace::now() const noexcept {
  return origin_ + std::chrono::duration<double>(Clock::now() - clock_).count() * team_.options.pace;
}

void Pace::wait(ReducingBarrier::Reduction all) {
  if (!began_) begin(all.least);
  turn_ = {all.least, all.least, 0};
  if ((all.flags & (kEnds | kSave)) != 0) return;
  const Time until = std::min(all.least, team_.end());
  for (bool given = false; !given && now() < until;) {
    team_.check_point(0, std::min(now(), until), 0);
    if (team_.asked_to_stop()) turn_.flags |= kStopped;
    if (team_.asked_to_save(0)) turn_.flags |= kSave;
    if (turn_.flags != 0) {
      turn_.least = turn_.bound = std::min(all.least, std::max(floor_, now()));
      return;
    }
    given = take(outside_.wait_for(std::min(kLook, (until - now()) / team_.options.pace)), all.least);
  }
  take(outside_.wait_for(0), all.least);
  // Nothing is executed before its time, but what is due is, however late it is.
  const Time due = std::max(now(), std::nextafter(turn_.least, kNever));
  turn_.bound = std::min(due, team_.alone() ? kNever : turn_.least + team_.world.lookahead);
  if (turn_.least < team_.end()) floor_ = std::max(floor_, turn_.bound);
}

// Whether there was any.
bool Pace::take(std::vector<Injected> given, Time earliest) {
  for (Injected& event : given) {
    event.time = std::max(floor_, std::min(now(), earliest));
    if (!(event.time < team_.end())) {
      ++team_.partitions[0]->counts.dropped;
      continue;
    }
    const auto owner = team_.world.owner.empty() ? 0u : team_.world.owner[event.to] - team_.world.first_partition;
    arrivals_[owner].push_back(team_.partitions[0]->from_outside(event, team_.injected.size()));
    turn_.least = std::min(turn_.least, event.time);
    team_.injected.push_back(std::move(event));
  }
  return !given.empty();
}

}  // namespace pdes

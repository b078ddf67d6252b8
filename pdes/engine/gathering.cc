#include "engine/gathering.h"

#include <algorithm>

#include "engine/team.h"

namespace pdes {
namespace {

constexpr std::uint64_t kLook = 16;  // windows between two looks at the clock
// Events of a window for each thread: with more it is not tried.  Threads that have a CPU each meet within less than a microsecond;
// if CPUs are shared, a window can take as long as the system lets others run.
constexpr std::uint64_t kSmall = 2, kSmallIfCrowded = 256;
constexpr double kTrial = 200e-6;  // seconds
constexpr double kMost = 1;        // seconds of patience
constexpr double kFaster = 0.9;    // a way is preferred if it takes this share of the other's time, or less

bool can_gather(const Team& team) noexcept { return team.threads() > 1 && team.ranks == nullptr && team.pace == nullptr; }

std::uint64_t events_of(const Team& team) noexcept {
  std::uint64_t events = 0;
  for (const Gauge& gauge : team.gauges) events += gauge.events();
  return events;
}

}  // namespace

Gathering::Gathering(const Team& team) : team_(team), how_(can_gather(team) ? team.options.gather : Gather::off) {
  begin(apart);
}

bool Gathering::wants() {
  if (how_ == Gather::off) return false;
  const bool looks = ++windows_ % kLook == 0;
  if (how_ == Gather::always) return !looks;  // not without an end: the others wait for what only they can do
  if (looks) {
    const double elapsed = std::chrono::duration<double>(Clock::now() - began_).count();
    if (elapsed >= (way_ == preferred_ ? patience_s_ : kTrial)) judge(elapsed);
  }
  return way_ == together;
}

void Gathering::judge(double elapsed_s) {
  window_s_[way_] = elapsed_s / static_cast<double>(windows_);
  const Way other = way_ == apart ? together : apart;
  if (way_ == preferred_) return begin(way_ == apart && !is_worth_a_trial(elapsed_s) ? apart : other);
  if (window_s_[way_] < kFaster * window_s_[other]) {
    preferred_ = way_;
    patience_s_ = kFirst_s;
  } else {
    patience_s_ = std::min(2 * patience_s_, kMost);
  }
  begin(preferred_);
}

// Of the first thread's time the larger part was waiting, and there is little to do in a window.
bool Gathering::is_worth_a_trial(double elapsed_s) const {
  const std::uint64_t events = events_of(team_) - events_then_;
  const std::uint64_t small = team_.barrier.is_crowded() ? kSmallIfCrowded : kSmall;
  return events < small * team_.threads() * windows_ && team_.partitions[0]->waits.all_s - blocked_then_s_ > elapsed_s / 2;
}

void Gathering::begin(Way way) {
  way_ = way;
  windows_ = 0;
  events_then_ = events_of(team_);
  blocked_then_s_ = team_.partitions[0]->waits.all_s;
  began_ = Clock::now();
}

}  // namespace pdes

#include "engine/gathering.h"

#include <algorithm>
#include <utility>

#include "engine/team.h"

namespace pdes {
namespace {

// Events of a window for each thread: with more it is not tried.
constexpr std::uint64_t kSmall = 32, kSmallIfCrowded = 256;
constexpr double kTrial_s = 200e-6;
constexpr double kFaster = 0.9;                // a way is preferred if it takes this share of the other's time, or less
constexpr double kMost_s = 1, kPatience = 50;  // of patience, but never less than so many times what a trial has cost
constexpr unsigned kWindowsOfAll = 16;         // with Gather::always, before all meet
constexpr double kGrown = 8;                   // times as long as a window took
constexpr double kAlwaysSmall_s = 50e-6;       // a window that takes less

double seconds(std::chrono::steady_clock::duration time) noexcept { return std::chrono::duration<double>(time).count(); }

bool can_gather(const Team& team) noexcept { return team.threads() > 1 && team.ranks == nullptr && team.pace == nullptr; }

// Events, which each shows now and then only.
std::uint64_t shown_by_all(const Team& team) noexcept {
  std::uint64_t shown = 0;
  for (const Gauge& gauge : team.gauges) shown += gauge.events();
  return shown;
}

}  // namespace

Gathering::Gathering(const Team& team) : team_(team), how_(can_gather(team) ? team.options.gather : Gather::off) {
  begin(apart);
}

// The clock is read before each window, which is little beside a barrier.
bool Gathering::wants() {
  if (how_ == Gather::off) return false;
  ++windows_;
  if (how_ == Gather::always) return windows_ % kWindowsOfAll != 0;
  const Clock::time_point now = Clock::now();
  const double elapsed = seconds(now - began_), last = seconds(now - std::exchange(before_, now));
  if (way_ == together && has_grown(last)) {
    preferred_ = apart;
    patience_s_ = kFirst_s;
    begin(apart);
  } else if (elapsed >= (way_ == preferred_ ? patience_s_ : kTrial_s)) {
    judge(elapsed);
  }
  return way_ == together;
}

// Two in a row: one may have been interrupted.
bool Gathering::has_grown(double window_s) {
  const bool is_large = window_s > std::max(kAlwaysSmall_s, kGrown * std::max(window_s_[together], window_s_[apart]));
  large_ = is_large ? large_ + 1 : 0;
  return large_ > 1;
}

void Gathering::judge(double elapsed_s) {
  window_s_[way_] = elapsed_s / static_cast<double>(windows_);
  const Way other = way_ == apart ? together : apart;
  if (way_ == preferred_) return begin(way_ == apart && !is_worth_a_trial(elapsed_s) ? apart : other);
  if (window_s_[way_] < kFaster * window_s_[other]) {
    preferred_ = way_;
    patience_s_ = kFirst_s;
  }
  patience_s_ = std::max(std::min(2 * patience_s_, kMost_s), kPatience * elapsed_s);
  begin(preferred_);
}

// Of the first thread's time the larger part was waiting, and there is little to do in a window.
bool Gathering::is_worth_a_trial(double elapsed_s) const {
  const Partition& own = *team_.partitions[0];
  const std::uint64_t events = std::max(shown_by_all(team_) - shown_then_, own.executed() - executed_then_);
  const std::uint64_t small = team_.barrier.is_crowded() ? kSmallIfCrowded : kSmall;
  return events < small * team_.threads() * windows_ && own.waits.all_s - blocked_then_s_ > elapsed_s / 2;
}

void Gathering::begin(Way way) {
  way_ = way;
  windows_ = 0;
  large_ = 0;
  shown_then_ = shown_by_all(team_);
  executed_then_ = team_.partitions[0]->executed();
  blocked_then_s_ = team_.partitions[0]->waits.all_s;
  began_ = before_ = Clock::now();
}

}  // namespace pdes

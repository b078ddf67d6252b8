#include "engine/balance.h"

#include <algorithm>
#include <cmath>

#include "engine/team.h"

namespace pdes {
namespace {

constexpr double kLook = 2048;            // events of a thread between two looks
constexpr double kLeast = 2, kMost = 64;  // windows between two looks
// What a move costs a thread, in events of some 40 ns: 4 to 20 ns for each pending key, which all are looked at, and a few for
// each LP; two barriers.
constexpr double kKeyPrice = 1. / 4, kLpPrice = 1. / 8, kFixedPrice = 256;
constexpr double kIgnored = 1. / 32;  // share of the mean: no cut is more exact
constexpr double kMaxPatience = 1024;

}  // namespace

Balancer::Balancer(Team& team, unsigned thread)
    : team_(team),
      thread_(thread),
      own_(*team.partitions[thread]),
      mine_(team.load_board->loads[thread]),
      executed_(team.threads()),
      counted_from_(team.threads()) {}

void Balancer::tell() noexcept {
  if (++window_ != next_look_) return;
  mine_.events = own_.executed();
  mine_.price = kFixedPrice + kKeyPrice * static_cast<double>(own_.pending.size()) +
                kLpPrice * static_cast<double>(own_.own_lps().size());
}

bool Balancer::is_due() noexcept {
  if (window_ != next_look_) return false;
  double all = 0, most = 0;
  for (unsigned thread = 0; thread < team_.threads(); ++thread) {
    const std::uint64_t now = team_.load_board->loads[thread].events;
    const auto since = static_cast<double>(now - std::exchange(executed_[thread], now));
    all += since;
    most = std::max(most, since);
  }
  const double mean = all / team_.threads();
  look_again(window_ - std::exchange(looked_, window_), mean);
  return mean > 0 && judge(mean, most);
}

// Looks are rare enough to cost nothing, and numbers large enough to mean something.
void Balancer::look_again(std::uint64_t windows, double mean) noexcept {
  const double wanted = kLook * static_cast<double>(windows) / std::max(mean, 1.0);
  next_look_ = window_ + static_cast<std::uint64_t>(std::clamp(wanted, kLeast, kMost));
}

bool Balancer::judge(double mean, double most) noexcept {
  const double excess = most / mean - 1;
  if (then_ > 0) patience_ = excess > then_ / 2 ? std::min(patience_ * 2, kMaxPatience) : std::max(patience_ / 2, 1.0);
  then_ = 0;
  // Of several normal numbers with a deviation of 1 the largest is at most the root of twice their logarithm, on average.
  const double by_chance = std::sqrt(2 * mean * std::log(team_.threads()));
  lost_ = std::max(0.0, lost_ + most - mean - by_chance - kIgnored * mean);
  const double bearable = price() * patience_;
  if (own_.executed_by_lp == nullptr) {
    if (lost_ > bearable / 2) begin_to_count();
    return false;
  }
  if (lost_ > 0 && lost_ < bearable) return false;
  own_.executed_by_lp = nullptr;
  if (lost_ == 0) return false;
  lost_ = 0;
  then_ = excess;
  return true;
}

double Balancer::price() const noexcept {
  double most = 0;
  for (const Load& load : team_.load_board->loads) most = std::max(most, load.price);
  return most;
}

void Balancer::begin_to_count() noexcept {
  counted_from_ = executed_;
  own_.executed_by_lp = team_.load_board->executed_by_lp.get();
  for (const Lp* lp : own_.own_lps()) own_.executed_by_lp[lp->id] = 0;
}

void Balancer::part(unsigned parity) {
  std::vector<Lp*> staying;
  try {
    choose(staying);
  } catch (...) {
    for (auto& lps : mine_.leaving) lps.clear();
    throw;
  }
  own_.parted += own_.own_lps().size() - staying.size();
  const bool leave = staying.size() < own_.own_lps().size();
  own_.own_lps() = std::move(staying);
  if (leave) own_.part(parity);
}

// An LP goes where its middle lies, if the row is as long as all have executed and each thread has an equal part.
void Balancer::choose(std::vector<Lp*>& staying) {
  const std::uint64_t threads = team_.threads();
  std::uint64_t before = 0, whole = 0;
  for (unsigned thread = 0; thread < threads; ++thread) {
    if (thread == thread_) before = whole;
    whole += executed_[thread] - counted_from_[thread];
  }
  staying.reserve(own_.own_lps().size());
  for (Lp* lp : own_.own_lps()) {
    const std::uint64_t events = team_.load_board->executed_by_lp[lp->id];
    const std::uint64_t to = std::min(threads - 1, (2 * before + events) * threads / (2 * whole));
    before += events;
    if (to == thread_) {
      staying.push_back(lp);
    } else {
      mine_.leaving[to].push_back(lp);
      team_.world.owner[lp->id] = static_cast<std::uint16_t>(team_.world.first_partition + to);
    }
  }
}

void Balancer::welcome() {
  std::vector<Lp*>& own = own_.own_lps();
  std::vector<Lp*> before, after;
  for (unsigned thread = 0; thread < team_.threads(); ++thread) {
    auto& arriving = team_.load_board->loads[thread].leaving[thread_];
    auto& side = thread < thread_ ? before : after;
    side.insert(side.end(), arriving.begin(), arriving.end());
    arriving.clear();
  }
  before.insert(before.end(), own.begin(), own.end());
  before.insert(before.end(), after.begin(), after.end());
  own = std::move(before);
}

}  // namespace pdes

#include "engine/balance.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "engine/append.h"
#include "engine/team.h"

namespace pdes {
namespace {

constexpr double kLook = 2048;            // events of a thread between two looks
constexpr double kLeast = 2, kMost = 64;  // windows between two looks
// What a move costs a thread, in events of some 40 ns: 4 to 20 ns for each pending key, which all are looked at, and a few for
// each LP; two barriers, or two exchanges of ranks, and what it sends to these.
constexpr double kKeyPrice = 1. / 4, kLpPrice = 1. / 8, kFixedPrice = 256, kFixedPriceOfRanks = 1024, kBytePrice = 1. / 64;
constexpr double kIgnored = 1. / 32;  // share of the mean: no cut is more exact
constexpr double kMaxPatience = 1024;
constexpr double kLogarithmOf2 = 0.6931471805599453;

}  // namespace

LoadBoard::LoadBoard(const World& world, unsigned threads, bool by_ranks, unsigned ranks)
    : between_ranks(by_ranks),
      first(by_ranks ? world.first_partition : 0),
      loads(by_ranks ? threads * ranks : threads),
      moving(threads),
      executed_by_lp(std::make_unique_for_overwrite<std::uint32_t[]>(world.lp_count)) {
  for (Moving& each : moving) {
    each.to_thread.resize(threads);
    each.to_rank.resize(ranks);
  }
}

void LoadBoard::write_loads(std::vector<std::byte>& message) const { append(message, &loads[first], moving.size()); }

std::span<const std::byte> LoadBoard::read_loads(unsigned rank, std::span<const std::byte> message) {
  const std::size_t bytes = moving.size() * sizeof(Load);
  std::memcpy(&loads[rank * moving.size()], message.data(), bytes);
  return message.subspan(bytes);
}

// Every rank learns where the LPs go, and gets those that come to it.
void LoadBoard::write_leaving(std::vector<std::byte>& message, unsigned rank) {
  std::size_t count = 0;
  for (const Moving& each : moving) count += each.leaving.size();
  append(message, &count, 1);
  for (const Moving& each : moving) append(message, each.leaving.data(), each.leaving.size());
  for (Moving& each : moving) {
    const std::vector<std::byte> lps = std::move(each.to_rank[rank]);
    append(message, lps.data(), lps.size());
  }
}

std::span<const std::byte> LoadBoard::read_leaving(World& world, unsigned rank, std::span<const std::byte> message) {
  std::size_t count = 0;
  std::memcpy(&count, message.data(), sizeof count);
  message = message.subspan(sizeof count);
  std::span<const std::byte> lps = message.subspan(count * sizeof(Leaving));
  for (; count > 0; --count, message = message.subspan(sizeof(Leaving))) {
    Leaving each;
    std::memcpy(&each, message.data(), sizeof each);
    world.owner[each.lp] = static_cast<std::uint16_t>(each.to);
    const std::size_t thread = each.to - first;
    if (each.to < first || thread >= moving.size()) continue;
    (rank * moving.size() < first ? moving[thread].below : moving[thread].above).push_back(lps.first(each.bytes));
    lps = lps.subspan(each.bytes);
  }
  return lps;
}

Balancer::Balancer(Team& team, unsigned thread)
    : team_(team),
      board_(*team.load_board),
      own_(*team.partitions[thread]),
      thread_(thread),
      place_(board_.first + thread),
      mine_(board_.moving[thread]),
      executed_(board_.loads.size()),
      counted_from_(board_.loads.size()) {}

void Balancer::tell() noexcept {
  if (++window_ != next_look_) return;
  const double fixed = board_.between_ranks ? kFixedPriceOfRanks : kFixedPrice;
  board_.loads[place_] = {own_.executed(), fixed + kKeyPrice * static_cast<double>(own_.pending.size()) +
                                               kLpPrice * static_cast<double>(own_.own_lps().size()) +
                                               kBytePrice * static_cast<double>(sent_)};
}

bool Balancer::is_due() noexcept {
  if (window_ != next_look_) return false;
  double all = 0, most = 0;
  for (std::size_t thread = 0; thread < executed_.size(); ++thread) {
    const std::uint64_t now = board_.loads[thread].events;
    const auto since = static_cast<double>(now - std::exchange(executed_[thread], now));
    all += since;
    most = std::max(most, since);
  }
  const double mean = all / static_cast<double>(executed_.size());
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
  // Of several normal numbers with a deviation of 1 the largest is at most the root of twice their logarithm, on average.  The
  // logarithm of the next power of two, because all machines have to come to the same bit.
  const double by_chance = std::sqrt(2 * mean * kLogarithmOf2 * static_cast<double>(std::bit_width(executed_.size() - 1)));
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
  for (const Load& load : board_.loads) most = std::max(most, load.price);
  return most;
}

void Balancer::begin_to_count() noexcept {
  counted_from_ = executed_;
  own_.executed_by_lp = board_.executed_by_lp.get();
  for (const Lp* lp : own_.own_lps()) own_.executed_by_lp[lp->id] = 0;
}

// What can fail comes first, so that an LP is in one place only.
void Balancer::part(unsigned parity) {
  std::vector<Lp*> staying;
  try {
    choose(staying);
  } catch (...) {
    for (auto& lps : mine_.to_thread) lps.clear();
    for (auto& bytes : mine_.to_rank) bytes.clear();
    mine_.leaving.clear();
    throw;
  }
  const std::size_t parted = own_.own_lps().size() - staying.size();
  own_.parted += parted;
  own_.emigrated += mine_.leaving.size();
  own_.own_lps() = std::move(staying);
  hand_over();
  if (parted > 0) own_.send_what_moved(parity);
}

// An LP goes where its middle lies, if the row is as long as all have executed and each thread has an equal part.
void Balancer::choose(std::vector<Lp*>& staying) {
  const std::uint64_t places = executed_.size();
  std::uint64_t before = 0, whole = 0;
  for (std::size_t place = 0; place < places; ++place) {
    if (place == place_) before = whole;
    whole += executed_[place] - counted_from_[place];
  }
  mine_.leaving.clear();  // told when LPs moved last
  sent_ = 0;
  staying.reserve(own_.own_lps().size());
  for (Lp* lp : own_.own_lps()) {
    const std::uint64_t events = board_.executed_by_lp[lp->id];
    const auto to = static_cast<std::uint32_t>(std::min(places - 1, (2 * before + events) * places / (2 * whole)));
    before += events;
    const std::size_t thread = to - board_.first;
    if (to == place_) {
      staying.push_back(lp);
    } else if (to >= board_.first && thread < mine_.to_thread.size()) {
      mine_.to_thread[thread].push_back(lp);
    } else {
      const std::vector<std::byte> bytes = own_.packed(lp->id);
      append(mine_.to_rank[to / mine_.to_thread.size()], bytes.data(), bytes.size());
      mine_.leaving.push_back({lp->id, to, bytes.size()});
      sent_ += bytes.size();
    }
  }
}

void Balancer::hand_over() noexcept {
  std::vector<std::uint16_t>& owner = team_.world.owner;
  for (std::size_t thread = 0; thread < mine_.to_thread.size(); ++thread)
    for (const Lp* lp : mine_.to_thread[thread])
      owner[lp->id] = static_cast<std::uint16_t>(team_.world.first_partition + thread);
  for (const Leaving& each : mine_.leaving) {
    owner[each.lp] = static_cast<std::uint16_t>(each.to);
    own_.remove(each.lp);
  }
}

void Balancer::welcome() {
  const std::vector<Lp*> stayed = std::move(own_.own_lps());
  std::vector<Lp*>& own = own_.own_lps();
  own.clear();
  const auto admit = [&](std::vector<std::span<const std::byte>>& arriving) {
    for (const auto& bytes : arriving) own.push_back(own_.unpack(bytes));
    arriving.clear();
  };
  admit(mine_.below);
  for (unsigned thread = 0; thread < team_.threads(); ++thread) {
    if (thread == thread_) own.insert(own.end(), stayed.begin(), stayed.end());
    auto& arriving = board_.moving[thread].to_thread[thread_];
    own.insert(own.end(), arriving.begin(), arriving.end());
    arriving.clear();
  }
  admit(mine_.above);
}

}  // namespace pdes

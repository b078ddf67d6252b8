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
constexpr double kEvent = 40;         // nanoseconds
constexpr std::uint64_t kTimed = 64;  // looks: in a window behind each so many events are timed, at first more often
// What an event costs that goes to another thread, or rank, beyond one that stays.
constexpr double kCrossPrice = 1. / 2, kCrossPriceOfRanks = 2;
constexpr double kInVain = 4;          // times what a move costs
constexpr std::uint64_t kDealt = 64;   // stretches of each thread when LPs are dealt out
constexpr double kIgnored = 1. / 32;   // share of the mean: no cut is more exact
constexpr double kLeastLost = 1. / 8;  // of what a thread executes between two looks, until LPs move
constexpr double kMaxPatience = 1024;
constexpr double kLogarithmOf2 = 0.6931471805599453;

// Whether events are timed behind that look, and told at the next.
bool is_timed(std::uint64_t look) noexcept { return look > 0 && (look % kTimed == 0 || std::has_single_bit(look)); }

}  // namespace

LoadBoard::LoadBoard(const World& world, unsigned threads, bool by_ranks, unsigned ranks)
    : between_ranks(by_ranks),
      first(by_ranks ? world.first_partition : 0),
      home(world.owner),
      loads(by_ranks ? threads * ranks : threads),
      moving(threads),
      timed(loads.size() * world.classes.size() * world.types.size()),
      weight_by_lp(std::make_unique_for_overwrite<std::uint64_t[]>(world.lp_count)) {
  for (Moving& each : moving) {
    each.to_thread.resize(threads);
    each.to_rank.resize(ranks);
  }
}

void LoadBoard::write_loads(std::vector<std::byte>& message) const {
  append(message, &loads[first], moving.size());
  if (tells_timed) append(message, &timed[first * cells()], moving.size() * cells());
}

std::span<const std::byte> LoadBoard::read_loads(unsigned rank, std::span<const std::byte> message) {
  const std::size_t bytes = moving.size() * sizeof(Load);
  std::memcpy(&loads[rank * moving.size()], message.data(), bytes);
  message = message.subspan(bytes);
  if (!tells_timed) return message;
  const std::size_t bytes_of_cells = moving.size() * cells() * sizeof(Timed);
  std::memcpy(&timed[rank * moving.size() * cells()], message.data(), bytes_of_cells);
  return message.subspan(bytes_of_cells);
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
      executed_by_type_(own_.executed_by_type.size()),
      counted_(board_.loads.size()),
      weights_(team.world.classes.size(), team.world.types.size()),
      event_timer_(team.world.classes.size() * team.world.types.size(), team.options.clock),
      by_lp_{&weights_, board_.weight_by_lp.get()} {}

void Balancer::tell() noexcept {
  if (++window_ != next_look_) return;
  const double price = (board_.between_ranks ? kFixedPriceOfRanks : kFixedPrice) +
                       kKeyPrice * static_cast<double>(own_.pending.size()) +
                       kLpPrice * static_cast<double>(own_.own_lps().size()) + kBytePrice * static_cast<double>(sent_);
  const Counts& now = own_.counts;
  board_.loads[place_] = {weight(), price, now.sent - std::exchange(sent_then_, now.sent),
                          now.crossed - std::exchange(crossed_then_, now.crossed), own_.own_lps().size()};
  const bool tells_timed = is_timed(looks_);
  if (thread_ == 0) board_.tells_timed = tells_timed;
  if (!tells_timed) return;
  const std::span<const Timed> timed = event_timer_.timed();
  std::copy(timed.begin(), timed.end(), board_.timed.begin() + static_cast<std::ptrdiff_t>(place_ * timed.size()));
  event_timer_.forget_half();
}

// Of what this thread has executed since the last look.
std::uint64_t Balancer::weight() noexcept {
  std::uint64_t by_type = 0;
  for (std::size_t type = 0; type < executed_by_type_.size(); ++type) {
    const std::uint64_t executed = own_.executed_by_type[type];
    by_type += (executed - std::exchange(executed_by_type_[type], executed)) * weights_.of(type);
  }
  const std::uint64_t by_class = std::exchange(by_lp_.sum, 0);
  return weights_.by_class() ? by_class : by_type;
}

bool Balancer::is_due() noexcept {
  if (window_ != next_look_) return false;
  double all = 0, most = 0;
  for (std::size_t thread = 0; thread < counted_.size(); ++thread) {
    const std::uint64_t weight = board_.loads[thread].weight;
    const double since = static_cast<double>(weight) / Weights::kUnit;
    counted_[thread] += weight;
    all += since;
    most = std::max(most, since);
  }
  const double mean = all / static_cast<double>(counted_.size());
  look_again(window_ - std::exchange(looked_, window_), mean);
  const bool moves = mean > 0 && judge(mean, most);
  if (team_.options.balance_by == BalanceBy::events) return moves;
  if (is_timed(looks_) && !moves) weigh();
  if (is_timed(++looks_)) own_.event_timer = &event_timer_;
  return moves;
}

// From here on.  What was counted with other weights is worth nothing.
void Balancer::weigh() noexcept {
  if (!weights_.find(board_.timed)) return;
  if (counts_ || weights_.by_class()) begin_to_count();
  else count_no_more();
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
  const double by_chance =
      std::sqrt(2 * mean * kLogarithmOf2 * weights_.spread() * static_cast<double>(std::bit_width(counted_.size() - 1)));
  lost_ = std::max(0.0, lost_ + most - mean - by_chance - kIgnored * mean);
  const double move = std::max(price(), kLeastLost * mean);  // moves that chance asks for gain nothing
  const double bearable = move * patience_;
  weigh_crossings(mean);
  if (dealt_ && moves_in_vain(0, move)) return true;
  if (!counts_) {
    counts_ = lost_ > bearable / 2;
    if (counts_) begin_to_count();
    return false;
  }
  if (lost_ > 0 && lost_ < bearable) return false;
  counts_ = false;
  count_no_more();
  if (lost_ == 0) return false;
  lost_ = 0;
  then_ = excess;
  if (!moves_in_vain(move + bearable, move)) next_ = Move::cut;
  return true;
}

// Whether that would be too much, and LPs are dealt out, or go home.
bool Balancer::moves_in_vain(double spent, double move) noexcept {
  const double crossings = std::exchange(crossings_, 0);
  regret_ = std::max(0.0, regret_ + spent + (dealt_ ? crossings : -std::max(0.0, crossings)));
  if (regret_ <= kInVain * move * deal_patience_) return false;
  next_ = dealt_ ? Move::home : Move::deal;
  if (dealt_) {
    deal_patience_ = std::min(deal_patience_ * 4, kMaxPatience);
    any_at_home_ = 1;
    crossed_at_home_ = 0;
  }
  dealt_ = !dealt_;
  regret_ = lost_ = then_ = 0;
  counts_ = false;
  count_no_more();
  return true;
}

// What LPs that are dealt out cost, or would cost: that as many events cross threads as if each were for any LP, where at home
// it is a share of that.  A thread that has more of the load than others has more of its events for itself, too.
void Balancer::weigh_crossings(double mean) noexcept {
  const auto places = static_cast<double>(board_.loads.size());
  const double if_even = (places - 1) / places;
  double sent = 0, crossed = 0, squares = 0;
  for (const Load& load : board_.loads) {
    const double share = static_cast<double>(load.weight) / (Weights::kUnit * mean * places);
    sent += static_cast<double>(load.sent);
    crossed += static_cast<double>(load.crossed);
    squares += share * share;
  }
  const double any = (1 - squares) * sent;
  if (!dealt_) {
    any_at_home_ += any;
    crossed_at_home_ += crossed;
  }
  const double home = if_even * sent * std::min(1.0, crossed_at_home_ / any_at_home_);
  const double more = (dealt_ ? crossed : if_even * sent) - home;
  crossings_ += in_events((board_.between_ranks ? kCrossPriceOfRanks : kCrossPrice) * more / places) - kIgnored * mean;
}

double Balancer::in_events(double engine_work) const noexcept {
  return weights_.mean_ns() > kEvent ? engine_work * kEvent / weights_.mean_ns() : engine_work;
}

double Balancer::price() const noexcept {
  double most = 0;
  for (const Load& load : board_.loads) most = std::max(most, load.price);
  return in_events(most);
}

void Balancer::begin_to_count() noexcept {
  std::fill(counted_.begin(), counted_.end(), 0);
  own_.counted = &by_lp_;
  for (const Lp* lp : own_.own_lps()) board_.weight_by_lp[lp->id] = 0;
}

void Balancer::count_no_more() noexcept { own_.counted = weights_.by_class() ? &by_lp_ : nullptr; }

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

// When cut, an LP goes where its middle lies, if the row is as long as all have executed and each thread has an equal part.
void Balancer::choose(std::vector<Lp*>& staying) {
  const std::uint64_t places = counted_.size();
  std::uint64_t before = 0, whole = 0, lps = 0, in_row = 0;
  for (std::size_t place = 0; place < places; ++place) {
    if (place == place_) {
      before = whole;
      in_row = lps;
    }
    whole += counted_[place];
    lps += board_.loads[place].lps;
  }
  const std::uint64_t neighbours = std::max<std::uint64_t>(1, lps / (places * kDealt));
  mine_.leaving.clear();  // told when LPs moved last
  sent_ = 0;
  staying.reserve(own_.own_lps().size());
  for (Lp* lp : own_.own_lps()) {
    std::uint64_t to = board_.home[lp->id] - team_.world.first_partition + board_.first;
    if (next_ == Move::deal) to = in_row++ / neighbours % places;
    if (next_ == Move::cut) {
      const std::uint64_t weight = board_.weight_by_lp[lp->id];
      to = std::min(places - 1, (2 * before + weight) * places / (2 * whole));
      before += weight;
    }
    const std::size_t thread = to - board_.first;
    if (to == place_) {
      staying.push_back(lp);
    } else if (to >= board_.first && thread < mine_.to_thread.size()) {
      mine_.to_thread[thread].push_back(lp);
    } else {
      const std::vector<std::byte> bytes = own_.packed(lp->id);
      append(mine_.to_rank[to / mine_.to_thread.size()], bytes.data(), bytes.size());
      mine_.leaving.push_back({lp->id, static_cast<std::uint32_t>(to), bytes.size()});
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
  if (next_ == Move::home) std::sort(own.begin(), own.end(), [](const Lp* a, const Lp* b) { return a->id < b->id; });
}

}  // namespace pdes

#include "models/phold_variants.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <memory>
#include <numeric>
#include <sstream>
#include <utility>
#include <vector>

namespace phold {
namespace {

constexpr std::size_t kKinds = 8;  // of events: kind k has 2^k words of payload, 8 to 1024 bytes

template <std::size_t kKind>
struct Hop {
  std::array<std::uint64_t, std::size_t{1} << kKind> words;  // the first: hops of this event so far
};

class PayloadMix {
 public:
  explicit PayloadMix(const std::string& text) {
    std::array<double, kKinds> shares{};
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ',');) add(part, shares);
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    if (!(sum > 0)) throw pdes::Error("--payload needs a size with a share above 0");
    single_ = std::ranges::count(shares, 0.0) == kKinds - 1;
    std::partial_sum(shares.begin(), shares.end(), up_to_.begin());
    for (double& bound : up_to_) bound /= sum;
  }

  // Draws a number only if there is a choice.
  std::size_t kind(pdes::Random random) const {
    const double place = single_ ? 0 : random.uniform();
    return static_cast<std::size_t>(std::ranges::upper_bound(up_to_, place) - up_to_.begin());
  }

 private:
  // "size" or "size:share"
  static void add(const std::string& part, std::array<double, kKinds>& shares) {
    std::istringstream in(part);
    std::uint64_t size = 0;
    char colon = ':';
    double share = 1;
    in >> size;
    if (!in.eof()) in >> colon >> share;
    const bool whole = !in.fail() && in.eof() && colon == ':' && share >= 0;
    if (!whole || !std::has_single_bit(size) || size < 8 || size > 1024)
      throw pdes::Error("--payload has '" + part + "', not one of 8, 16, 32, 64, 128, 256, 512, 1024, or size:share");
    shares[static_cast<std::size_t>(std::countr_zero(size / 8))] += share;
  }

  std::array<double, kKinds> up_to_{};  // share of kinds 0 to k
  bool single_ = false;
};

// The state of an LP: its events write one cache line each, in turn.
class State {
 public:
  explicit State(std::uint64_t bytes) : words_((bytes + 7) / 8) {}
  void write(std::uint64_t value) {
    if (words_.empty()) return;
    words_[place_] += value;
    place_ += 64 / sizeof(std::uint64_t);
    if (place_ >= words_.size()) place_ = 0;
  }

  void serialize(auto& archive) { archive(words_, place_); }

 private:
  std::vector<std::uint64_t> words_;
  std::size_t place_ = 0;
};

struct Setting {
  Parameters parameters;
  PayloadMix payload;
};

template <class Kinds>
class VariedNode;

template <std::size_t... kKind>
class VariedNode<std::index_sequence<kKind...>> {
 public:
  using Context = pdes::Context<Hop<kKind>...>;
  explicit VariedNode(std::shared_ptr<const Setting> setting)
      : setting_(std::move(setting)), state_(setting_->parameters.state) {}

  void start(Context& context) {
    for (std::uint32_t i = 0; i < setting_->parameters.events_per_lp; ++i) send(context, context.id(), 0);
  }
  template <std::size_t kOne>
  void on(Context& context, const Hop<kOne>& event) {
    state_.write(event.words.front());
    send(context, destination(context), event.words.front() + 1);
  }
  void serialize(auto& archive) { archive(state_); }

 private:
  pdes::LpId destination(Context& context) const {
    const Parameters& p = setting_->parameters;
    auto random = context.random();
    if (!random.chance(p.remote)) return context.id();
    if (p.hot > 1) return in_or_out_of_the_hot_place(context);
    const bool preferred = p.imbalance > 0 && random.chance(p.imbalance);
    const pdes::LpId among = preferred ? std::max(context.lp_count() / 8, 1u) : context.lp_count();
    return static_cast<pdes::LpId>(random.integer(among));
  }

  // Where it is depends on the time alone.
  pdes::LpId in_or_out_of_the_hot_place(Context& context) const {
    const Parameters& p = setting_->parameters;
    auto random = context.random();
    const std::uint64_t all = context.lp_count(), hot = std::max<std::uint64_t>(all / 8, 1);
    const double turns = context.now() / p.hot_turn;
    const auto first = static_cast<std::uint64_t>((turns - std::floor(turns)) * static_cast<double>(all));
    const double weight = p.hot * static_cast<double>(hot);
    const bool inside = random.chance(weight / (weight + static_cast<double>(all - hot)));
    return static_cast<pdes::LpId>((first + (inside ? random.integer(hot) : hot + random.integer(all - hot))) % all);
  }

  pdes::Time delay(Context& context) const {
    const double mean = setting_->parameters.mean - context.lookahead();
    auto random = context.random();
    switch (setting_->parameters.distribution) {
      case Distribution::exponential: return random.exponential(mean);
      case Distribution::uniform: return 2 * mean * random.uniform();
      case Distribution::bimodal: return random.exponential(random.chance(0.9) ? 0.1 * mean : 9.1 * mean);
      case Distribution::ties: return mean;
      case Distribution::pareto: return mean / 2 / std::sqrt(1 - random.uniform());
    }
    return mean;
  }

  void send(Context& context, pdes::LpId to, std::uint64_t hops) {
    const pdes::Time after = context.lookahead() + delay(context);
    const std::size_t kind = setting_->payload.kind(context.random());
    (void)((kind == kKind && (context.send(to, after, Hop<kKind>{{hops}}), true)) || ...);
  }

  std::shared_ptr<const Setting> setting_;
  State state_;
};

}  // namespace

void add_varied(pdes::Simulation& simulation, const Parameters& parameters) {
  using Node = VariedNode<std::make_index_sequence<kKinds>>;
  const auto setting = std::make_shared<const Setting>(Setting{parameters, PayloadMix(parameters.payload)});
  simulation.add<Node>(parameters.lps, [setting](pdes::LpId) { return Node(setting); });
}

}  // namespace phold

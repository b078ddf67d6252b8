// Production mixes, drawn by lot: what a program's call sites ask for, and what one of its threads then calls.
//
// A mix has 48 call sites.  Their usual sizes are spread evenly over the octaves from 8 B to 4 MB, and the larger a site's
// blocks, the more seldom it is called.  Each has a usual lifetime, over six decades of calls; most are short, those of
// large blocks longer.  Some sites' blocks live until their phase ends, some for the whole run.  From phase to phase
// other sites are busy.
//
// The shape is that of published studies of large services (Zhou et al., ASPLOS 2024; Maas et al., ASPLOS 2020): by number
// most blocks are small and die at once, by bytes large and lasting ones matter as much.  How much of each, which site,
// and when, is drawn from the seed; a draw that breaks a promise of keeps_promises() is drawn again.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <vector>

#include "mapped.h"
#include "workers.h"

namespace bench {

inline constexpr std::uint32_t kSmallest = 8;
inline constexpr std::uint32_t kLargest = 4 << 20;
inline constexpr std::uint32_t kSmall = 1024;  // what most requests are at most
inline constexpr std::uint32_t kScattered = 32 << 10;
inline constexpr double kAtOnce = 100;            // calls: who lives no longer dies at once
inline constexpr double kLongestDrawn = 1e6;      // calls: six decades
inline constexpr std::uint32_t kRun = 4'000'000;  // calls of the run for which a mix is drawn

inline double share(Random& random) { return random.next() / 4294967296.0; }
inline double normal(Random& random) {
  double radius = std::sqrt(-2 * std::log((random.next() + 1.0) / 4294967296.0));
  return radius * std::cos(2 * std::numbers::pi * share(random));
}

enum class Fate { drawn, ends_with_phase, stays };

struct Site {
  double octaves;  // of its usual size, above a byte
  double spread;   // octaves by which sizes vary to either side; 0: all are equal
  double decades;  // of its usual lifetime, above one call
  Fate fate;
  double calls;  // share of all calls

  double size() const { return std::exp2(octaves); }
};

class Mix {
 public:
  explicit Mix(std::uint32_t seed) : random_(seed) {
    do draw();
    while (!keeps_promises());
    draw_phases();
  }

  std::uint32_t phases() const { return static_cast<std::uint32_t>(ends_.size()); }
  const Site& site(std::uint32_t phase, Random& random) const {
    const auto& ends = ends_[phase];
    auto found = std::upper_bound(ends.begin(), ends.end() - 1, share(random) * ends.back());
    return sites_[static_cast<std::size_t>(found - ends.begin())];
  }

 private:
  static constexpr std::size_t kSites = 48;
  using Sites = std::array<double, kSites>;

  void draw() {
    const double least = std::log2(kSmallest);
    const double octaves = std::log2(kLargest) - least;
    const double tilt = 0.7 + 0.3 * share(random_);  // with 1, every octave would have the same bytes
    most_live_ = std::exp2(26 + 2 * share(random_));
    for (std::size_t i = 0; i < kSites; ++i) {
      double place = (static_cast<double>(i) + share(random_)) / kSites;
      double skew = 4 - 2.5 * place;  // the higher, the more lifetimes are short
      std::uint32_t lot = random_.below(16);
      sites_[i] = {.octaves = least + octaves * place,
                   .spread = random_.below(2) == 0 ? 0.0 : 1.0,
                   .decades = std::log10(kLongestDrawn) * std::pow(share(random_), skew),
                   .fate = lot == 0   ? Fate::stays
                           : lot <= 2 ? Fate::ends_with_phase
                                      : Fate::drawn,
                   .calls = std::exp(1.5 * normal(random_) - tilt * octaves * place * std::numbers::ln2)};
    }
    make_shares();
    // No site alone holds more than a part of what is live: who would is called more seldom.
    for (Site& site : sites_) site.calls *= std::min(1.0, most_live_ / 8 / live(site));
    make_shares();
  }

  void make_shares() {
    double all = total([](const Site&) { return true; });
    for (Site& site : sites_) site.calls /= all;
  }

  // Bytes that a site's blocks are expected to hold late in the run.
  static double live(const Site& site) {
    double age = site.fate == Fate::drawn ? std::pow(10, site.decades) : kRun;
    return site.calls * site.size() * age;
  }

  template <class Which>
  double total(Which which) const {
    double sum = 0;
    for (const Site& site : sites_) sum += which(site) ? site.calls : 0;
    return sum;
  }

  bool keeps_promises() const {
    double small = total([](const Site& site) { return site.size() <= kSmall; });
    double at_once = total([](const Site& site) { return site.fate == Fate::drawn && site.decades <= std::log10(kAtOnce); });
    // Many and not too large: what is left of a page or a span that has a survivor is what idleness is about.
    double staying = 0;
    for (const Site& site : sites_) staying += site.fate == Fate::stays && site.size() <= kScattered ? live(site) : 0;
    return small >= 0.9 && at_once >= 0.6 && staying >= most_live_ / 32;
  }

  void draw_phases() {
    ends_.resize(2 + random_.below(4));
    for (Sites& ends : ends_) {
      double end = 0;
      for (std::size_t i = 0; i < kSites; ++i) {
        // What stays comes steadily: survivors are spread over the whole run.
        double busy = sites_[i].fate == Fate::stays ? 1.0 : std::exp(normal(random_));
        ends[i] = end += sites_[i].calls * busy;
      }
    }
  }

  Random random_;
  double most_live_ = 0;  // bytes, about
  std::array<Site, kSites> sites_{};
  std::vector<Sites> ends_;  // by phase: running sums of the sites' calls
};

// What the blocks of a script are like, all of them or those of one thread.
struct Facts {
  double blocks = 0;
  double small = 0;  // blocks of at most kSmall
  double bytes = 0;
  double small_bytes = 0;
  double small_at_once = 0;  // blocks that die at once
  double large_at_once = 0;
  double handed_over = 0;
  double survivors = 0;
  double surviving_bytes = 0;
  std::array<double, 7> by_decade{};  // of lifetimes; the last: those without an end
  std::uint32_t digest = 0;           // of the scripts: even numbers of equal ones cancel out

  void count(std::uint32_t size, double lifetime) {
    blocks += 1;
    bytes += size;
    small += size <= kSmall ? 1 : 0;
    small_bytes += size <= kSmall ? size : 0;
    if (lifetime <= kAtOnce) (size <= kSmall ? small_at_once : large_at_once) += 1;
    by_decade[static_cast<std::size_t>(std::min(6.0, std::log10(lifetime)))] += 1;
  }
};

struct MixCall {
  static constexpr std::uint32_t kHandOver = 1u << 31;  // in a slot: the next thread frees it
  std::uint32_t slot;
  std::uint32_t size;  // 0: free
};

// One thread's calls, drawn in advance: its share of the run, then the end of the rush, in which all but the lasting
// blocks are freed as they fall due.  Lifetimes are counted in calls of all threads.
class Script {
 public:
  Script(const Mix& mix, std::uint32_t steps, unsigned threads, std::uint32_t handover, std::uint64_t seed, Facts& facts)
      : mix_(mix),
        steps_(steps),
        threads_(threads),
        handover_(handover),
        random_(seed),
        facts_(facts),
        calls_(2 * std::size_t{steps}) {
    Mapped<std::uint32_t> due(2 * std::size_t{steps});
    Mapped<std::uint32_t> next(std::size_t{steps} + 1);
    for (std::uint32_t step = 0; step < steps; ++step) {
      release_due(due[step], next);
      allocate(step, due, next);
    }
    for (std::uint32_t step = steps; step < 2 * steps; ++step) release_due(due[step], next);
    facts_.survivors += slots_ - free_;
    facts_.digest ^= digest_;
  }

  std::span<const MixCall> calls() const { return calls_.all().first(count_); }
  std::uint32_t slots() const { return slots_; }
  std::uint32_t handed_over() const { return handed_over_; }

 private:
  // Lists through `next`: of free slots, and of those that fall due at a step.  Slots are counted from 1, 0 ends a list.
  void allocate(std::uint32_t step, const Mapped<std::uint32_t>& due, const Mapped<std::uint32_t>& next) {
    std::uint32_t phase = static_cast<std::uint32_t>(std::uint64_t{step} * mix_.phases() / steps_);
    const Site& site = mix_.site(phase, random_);
    double size = std::exp2(site.octaves + site.spread * (2 * share(random_) - 1));
    MixCall call{take_slot(next), static_cast<std::uint32_t>(std::clamp(size, double{kSmallest}, double{kLargest}))};
    std::uint32_t end = end_of(site, step, phase, call.size);
    if (end < 2 * steps_) {
      next[call.slot + 1] = due[end];
      due[end] = call.slot + 1;
    } else {
      facts_.surviving_bytes += call.size;
    }
    append(call);
  }

  // The step at which a block falls due; from twice the script's steps on: never.
  std::uint32_t end_of(const Site& site, std::uint32_t step, std::uint32_t phase, std::uint32_t size) {
    constexpr double kNever = std::numeric_limits<double>::infinity();
    double lasts = std::clamp(std::pow(10, site.decades + share(random_) - 0.5), 1.0, kLongestDrawn - 1);
    if (site.fate == Fate::stays) lasts = kNever;
    if (site.fate == Fate::ends_with_phase) {
      // Not all at the same step, and so not in the order in which they came.
      double phase_steps = static_cast<double>(steps_) / mix_.phases();
      lasts = threads_ * ((phase + 1 + share(random_) / 16) * phase_steps - step);
      lasts = std::max(1.0, lasts);
    }
    facts_.count(size, lasts);
    double end = step + std::ceil(lasts / threads_);
    return end < 2.0 * steps_ ? static_cast<std::uint32_t>(end) : 2 * steps_;
  }

  std::uint32_t take_slot(const Mapped<std::uint32_t>& next) {
    if (first_free_ == 0) return slots_++;
    std::uint32_t slot = first_free_ - 1;
    first_free_ = next[first_free_];
    --free_;
    return slot;
  }

  void release_due(std::uint32_t first, const Mapped<std::uint32_t>& next) {
    for (std::uint32_t each = first; each != 0;) {
      bool hands_over = random_.below(100) < handover_;
      handed_over_ += hands_over ? 1 : 0;
      facts_.handed_over += hands_over ? 1 : 0;
      append({(each - 1) | (hands_over ? MixCall::kHandOver : 0), 0});
      std::uint32_t after = next[each];
      next[each] = first_free_;
      first_free_ = each;
      ++free_;
      each = after;
    }
  }

  void append(MixCall call) {
    for (std::uint32_t word : {call.slot, call.size}) digest_ = (digest_ ^ word) * 16777619u;
    calls_[count_++] = call;
  }

  const Mix& mix_;
  const std::uint32_t steps_;
  const unsigned threads_;
  const std::uint32_t handover_;  // percent
  Random random_;
  Facts& facts_;
  Mapped<MixCall> calls_;
  std::size_t count_ = 0;
  std::uint32_t slots_ = 0;
  std::uint32_t first_free_ = 0;
  std::uint32_t free_ = 0;
  std::uint32_t handed_over_ = 0;
  std::uint32_t digest_ = 2166136261u;
};

}  // namespace bench

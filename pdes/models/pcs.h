// PCS (Carothers, Fujimoto, Lin 1994): a personal communication service, portable telephones that move over a torus of
// cells.  A call occupies one channel of the cell that its portable is in; a portable that moves during a call needs a
// channel of the next cell.  docs/pdes-models.md says how this differs from the published model.
#pragma once

#include <algorithm>
#include <cstdint>

#include "models/torus.h"

namespace pcs {

struct Parameters {
  Torus torus{128, 128};
  std::uint32_t portables = 16;                     // of each cell, at the start
  std::uint32_t channels = 10;                      // of each cell
  std::uint32_t reserve = 0;                        // additional ones of each cell, for calls handed over from another
  double next_call = 360, call = 180, move = 4500;  // mean times between attempts, of a call, in a cell
};

enum class Channel : std::uint64_t { normal, reserve };

// What a portable carries along.  It is one event at any time, due at the earliest of its times.
struct Portable {
  pdes::Time completion, next, move;  // when these are due: of the call, the next attempt, the stay in the cell
  Channel channel;                    // during a call
};
struct NextCall {
  Portable portable;
};
struct CompletionCall {
  Portable portable;
};
struct MoveCallOut {
  Portable portable;
};  // leaves the cell during a call
struct MoveCallIn {
  Portable portable;
};  // enters during a call
struct Walk {
  Portable portable;
};  // enters without a call, and leaves before its next

class Cell {
 public:
  using Context = pdes::Context<NextCall, CompletionCall, MoveCallOut, MoveCallIn, Walk>;
  explicit Cell(const Parameters& p) : p_(p), free_{p.channels, p.reserve} {}

  void start(Context& context) {
    for (std::uint32_t i = 0; i < p_.portables; ++i) {
      const pdes::Time move = context.random().exponential(p_.move);
      wait(context, Portable{0, context.random().exponential(p_.next_call), move, Channel::normal});
    }
  }

  void on(Context& context, const NextCall& event) {
    Portable portable = event.portable;
    ++count_.attempts;
    portable.next = context.now() + context.random().exponential(p_.next_call);
    if (!take(portable, Channel::normal)) {
      ++count_.channel_blocks;
      return wait(context, portable);
    }
    portable.completion = context.now() + context.random().exponential(p_.call);
    talk(context, portable);
  }

  void on(Context& context, const CompletionCall& event) {
    ++count_.completions;
    give_back(event.portable);
    wait(context, event.portable);
  }

  void on(Context& context, const MoveCallOut& event) {
    ++count_.portables_out;
    give_back(event.portable);
    context.send(neighbour(context), context.lookahead(), MoveCallIn{event.portable});
  }

  void on(Context& context, const MoveCallIn& event) {
    Portable portable = event.portable;
    ++count_.portables_in;
    portable.move = context.now() + context.random().exponential(p_.move);
    if (take(portable, Channel::normal) || take(portable, Channel::reserve)) return talk(context, portable);
    ++count_.handoff_blocks;
    wait(context, portable);
  }

  void on(Context& context, const Walk& event) { wait(context, event.portable); }

  void serialize(auto& archive) { archive(free_, count_); }

  void report(pdes::Report& report) const {
    report.count("attempts", count_.attempts);
    report.count("busy_lines", count_.busy_lines);
    report.count("channel_blocks", count_.channel_blocks);
    report.count("completions", count_.completions);
    report.count("portables_out", count_.portables_out);
    report.count("portables_in", count_.portables_in);
    report.count("handoff_blocks", count_.handoff_blocks);
    report.count("busy_channels", std::int64_t{p_.channels} + p_.reserve - free_[0] - free_[1]);
  }

 private:
  // What falls due while a portable is between two cells happens on its arrival: no delay is negative.
  static pdes::Time until(Context& context, pdes::Time due, pdes::Time least = 0) {
    return std::max(due - context.now(), least);
  }

  pdes::LpId neighbour(Context& context) const { return p_.torus.neighbour(context.id(), context.random().integer(4)); }

  bool take(Portable& portable, Channel channel) {
    std::int64_t& free = free_[static_cast<std::size_t>(channel)];
    if (free == 0) return false;
    --free;
    portable.channel = channel;
    return true;
  }
  void give_back(const Portable& portable) { ++free_[static_cast<std::size_t>(portable.channel)]; }

  // During a call: further attempts find the line busy, until the call ends or the portable leaves.
  void talk(Context& context, Portable portable) {
    while (portable.next < std::min({portable.completion, portable.move, context.end()})) {
      ++count_.attempts;
      ++count_.busy_lines;
      portable.next += context.random().exponential(p_.next_call);
    }
    if (portable.completion <= portable.move) {
      context.send_self(until(context, portable.completion), CompletionCall{portable});
    } else {
      context.send_self(until(context, portable.move), MoveCallOut{portable});
    }
  }

  // Without a call: the next event is the next attempt, here or in the next cell, or else the step into that.
  void wait(Context& context, Portable portable) {
    if (portable.next <= portable.move) return context.send_self(until(context, portable.next), NextCall{portable});
    const pdes::Time step = until(context, portable.move, context.lookahead());
    portable.move = context.now() + step + context.random().exponential(p_.move);
    if (portable.next <= portable.move) {
      context.send(neighbour(context), until(context, portable.next, step), NextCall{portable});
    } else {
      context.send(neighbour(context), step, Walk{portable});
    }
  }

  struct Counters {
    std::int64_t attempts = 0;        // to call somebody
    std::int64_t busy_lines = 0;      // of these, while in a call
    std::int64_t channel_blocks = 0;  // of these, without a free channel
    std::int64_t completions = 0;
    std::int64_t portables_out = 0;   // that left during a call
    std::int64_t portables_in = 0;    // that entered during a call
    std::int64_t handoff_blocks = 0;  // of these, without a free channel: the call is lost
  };

  const Parameters& p_;
  std::int64_t free_[2];  // by Channel
  Counters count_;
};

// The share of calls to be made or continued that found no channel.
inline double blocking_probability(const pdes::Report& r) {
  const auto asked = static_cast<double>(r.count_of("attempts") - r.count_of("busy_lines"));
  return asked == 0 ? 0 : static_cast<double>(r.count_of("channel_blocks") + r.count_of("handoff_blocks")) / asked;
}

// Keeps a reference to parameters.
inline void add(pdes::Simulation& simulation, const Parameters& p) {
  simulation.add<Cell>(p.torus.size(), [&p](pdes::LpId) { return Cell(p); });
  simulation.set_neighbours(p.torus);
}

}  // namespace pcs

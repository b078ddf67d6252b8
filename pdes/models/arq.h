// Arq: pairs of stations on wires that lose what is sent.  One sends a packet until the other one's acknowledgement comes,
// then the next.  The run ends when every sender knows its mean time well enough.  docs/pdes-library.md has the theory.
#pragma once

#include <cstdint>

#include "pdes/pdes.h"

namespace arq {

struct Parameters {
  std::uint32_t wires = 100;
  double loss = 0.1;         // of packets, and of acknowledgements
  double wire = 1;           // time on it, either way
  double patience = 3;       // more than two wires: after which a packet is sent again
  double precision = 0.02;   // half width of a sender's interval over its mean; 0: until the end of time
  std::uint64_t batch = 50;  // packets

  double success() const { return (1 - loss) * (1 - loss); }  // of one try
  double time() const { return 2 * wire + patience * (1 - success()) / success(); }
  double retrying() const { return 1 - success(); }  // share of the time after a first failure
};

struct Begin {};
struct Packet {};
struct Acknowledgement {};
struct Timeout {};
struct Sure {};  // a sender knows enough

// The two ends of wire n are LPs 2n, which sends, and 2n + 1.
class Station {
 public:
  using Context = pdes::Context<Begin, Packet, Acknowledgement, pdes::Cancellable<Timeout>, Sure>;
  explicit Station(const Parameters& p) : p_(p), batches_(p.batch) {}

  void start(Context& context) {
    if (context.id() % 2 == 0) context.send_self(context.random().uniform(), Begin{});
  }
  void on(Context& context, const Begin&) {
    began_ = context.now();
    retrying_.set(context.now(), 0);
    try_now(context);
  }
  void on(Context& context, const Packet&) { over_the_wire(context, Acknowledgement{}); }
  void on(Context& context, const Acknowledgement&) {
    patience_.cancel();
    took_.add(context.now() - began_);
    batches_.add(context.now() - began_);
    if (!sure_ && knows_enough()) {
      sure_ = true;
      context.send(0, p_.wire, Sure{});
    }
    context.send_self(0, Begin{});
  }
  void on(Context& context, const Timeout&) {
    retrying_.set(context.now(), 1);
    try_now(context);
  }
  void on(Context& context, const Sure&) {
    if (++all_sure_ == p_.wires) context.end_after(context.lookahead());
  }

  void report(pdes::Report& report) const {
    if (took_.tally().count() == 0) return;
    report.histogram("took", took_);
    report.interval("mean_time", batches_);
    report.level("retrying", retrying_);
    report.count("sure", sure_ ? 1 : 0);
  }

  template <class A>
  void serialize(A& archive) {
    archive(began_, patience_, took_, batches_, retrying_, sure_, all_sure_);
  }

 private:
  template <class E>
  void over_the_wire(Context& context, const E& event) {
    if (!context.random().chance(p_.loss)) context.send(context.id() ^ 1, p_.wire, event);
  }
  void try_now(Context& context) {
    over_the_wire(context, Packet{});
    context.set(patience_, p_.patience, Timeout{});
  }
  bool knows_enough() const {
    return p_.precision > 0 && batches_.batches() >= 20 && batches_.half_width() <= p_.precision * batches_.mean();
  }

  const Parameters& p_;
  pdes::Time began_ = 0;  // the present packet
  pdes::Timer patience_;
  pdes::Histogram took_;
  pdes::BatchMeans batches_;
  pdes::Level retrying_;
  bool sure_ = false;
  std::uint32_t all_sure_ = 0;  // of LP 0: senders
};

// Keeps a reference to parameters.
inline void add(pdes::Simulation& simulation, const Parameters& p) {
  if (p.wire < simulation.options().lookahead) throw pdes::Error("--wire must not be below the lookahead");
  if (!(p.patience > 2 * p.wire)) throw pdes::Error("--patience must be more than twice --wire");
  simulation.add<Station>(2 * p.wires, [&p](pdes::LpId) { return Station(p); });
}

}  // namespace arq

// Network: hosts send packets over routers, which store and forward them.  A router sends a packet only if it has a
// credit, that is, knows of a free buffer at the link's other end.  docs/pdes-library.md has the theory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <variant>
#include <vector>

#include "models/network_shapes.h"

namespace network {

enum class Kind : std::uint8_t { torus, dragonfly };
enum class Traffic : std::uint8_t { uniform, hard };

struct Parameters {
  Kind kind = Kind::torus;
  Torus torus{8, 8};
  std::uint32_t links = 2;  // of each router of a dragonfly to other groups; all else follows
  Traffic traffic = Traffic::uniform;
  double load = 0.5;          // packets of each host in the time that a packet takes on a link
  std::uint32_t packets = 0;  // of each host; 0: no end
  double transfer = 1;        // time that a packet takes on a link
  double wire = 1;            // until what was sent arrives
  std::uint32_t buffers = 8;  // for packets, of each port and lane
  std::uint32_t backlog = 8;  // packets of a host that its router keeps; it refuses more
  double warm_up = 100;       // nothing that is delivered earlier counts
};

struct Creation {
  std::uint64_t packets;  // of this host, before
};
struct Packet {
  pdes::Time created;
  pdes::LpId to;
  std::uint32_t hops;
  std::uint32_t port, lane;  // of the buffer it is in
};
struct Credit {
  std::uint32_t port, lane;
};
struct Idle {
  std::uint32_t port;
};

template <class Shape>
class Router {
 public:
  using Context = pdes::Context<Creation, Packet, Credit, Idle>;
  Router(const Parameters& p, const Shape& shape)
      : p_(p), shape_(shape), credits_(std::size_t{shape.ports()} * kLanes, p.buffers), busy_(shape.ports()) {}

  void start(Context& context) {
    for (std::uint32_t host = 0; host < shape_.hosts(); ++host) create_later(context, 0);
  }

  void on(Context& context, const Creation& creation) {
    auto random = context.random();
    const pdes::LpId any = static_cast<pdes::LpId>(random.integer(context.lp_count()));
    const pdes::LpId to = p_.traffic == Traffic::uniform ? any : shape_.hard(context.id(), random.bits());
    ++offered_;
    if (own_ < std::uint64_t{p_.backlog} * shape_.hosts()) take(context, {context.now(), to, 0, kHost, 0});
    else ++refused_;
    if (creation.packets + 1 != p_.packets) create_later(context, creation.packets + 1);
  }

  void on(Context& context, const Packet& packet) { take(context, packet); }

  void on(Context& context, const Credit& credit) {
    ++credits_[credit.port * kLanes + credit.lane];
    forward(context, credit.port);
  }

  void on(Context& context, const Idle& idle) {
    busy_[idle.port] = 0;
    forward(context, idle.port);
  }

  void report(pdes::Report& report) const {
    report.count("offered", offered_);
    report.count("refused", refused_);
    report.count("waiting", static_cast<std::int64_t>(waiting_.size()));
    for (const std::uint32_t credits : credits_) report.count("credits", credits);
    report.tally("hops", hops_);
    report.tally("latency", latency_);
    report.tally("queueing", queueing_);
    report.count("delivered_warm", delivered_warm_);
  }

  template <class A>
  void serialize(A& archive) {
    archive(waiting_, credits_, busy_, own_, offered_, refused_, delivered_warm_, hops_, latency_, queueing_);
  }

 private:
  static constexpr std::uint32_t kHost = ~0u;  // no port: the packet comes from a host

  struct Waiting {
    Packet packet;
    Way way;
  };

  pdes::Time hop() const { return p_.transfer + p_.wire; }

  void create_later(Context& context, std::uint64_t packets) {
    context.send_self(context.random().exponential(p_.transfer / p_.load), Creation{packets});
  }

  void take(Context& context, const Packet& packet) {
    if (packet.to == context.id()) return deliver(context, packet);
    const Way way = shape_.way(context.id(), packet.to);
    const bool own = packet.port == kHost;
    waiting_.insert(waiting_.end() - (own ? 0 : own_), {packet, way});
    if (own) ++own_;
    forward(context, way.port);
  }

  void deliver(Context& context, const Packet& packet) {
    const pdes::Time latency = context.now() - packet.created;
    hops_.add(packet.hops);
    latency_.add(latency);
    queueing_.add(latency - packet.hops * hop());
    if (context.now() >= p_.warm_up) ++delivered_warm_;
    give_back(context, packet);
  }

  // The first packet for that port whose lane has a credit.  Those of other routers come before own ones: a network that
  // lets too many in carries less, in a ring not half as much.
  void forward(Context& context, std::uint32_t port) {
    if (busy_[port] != 0) return;
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      const auto [packet, way] = waiting_[i];
      std::uint32_t& credits = credits_[way.port * kLanes + way.lane];
      if (way.port != port || credits == 0) continue;
      --credits;
      busy_[port] = 1;
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
      const Port next = shape_.opposite(context.id(), port);
      context.send(next.router, hop(), Packet{packet.created, packet.to, packet.hops + 1, next.port, way.lane});
      context.send_self(p_.transfer, Idle{port});
      if (packet.port == kHost) --own_;
      return give_back(context, packet);
    }
  }

  // The buffer is free once the packet is out of it; whoever sent it there gets the credit as soon as a packet would come.
  void give_back(Context& context, const Packet& packet) {
    if (packet.port == kHost) return;
    const Port from = shape_.opposite(context.id(), packet.port);
    context.send(from.router, hop(), Credit{from.port, packet.lane});
  }

  const Parameters& p_;
  const Shape& shape_;
  std::vector<Waiting> waiting_;        // in the order of their arrival, own ones last
  std::vector<std::uint32_t> credits_;  // by port and lane
  std::vector<std::uint8_t> busy_;      // by port: 1 while a packet leaves
  std::uint32_t own_ = 0;               // of those that wait
  std::int64_t offered_ = 0, refused_ = 0, delivered_warm_ = 0;
  pdes::Tally hops_, latency_, queueing_;
};

using AnyShape = std::variant<TorusShape, Dragonfly>;
inline AnyShape make_shape(const Parameters& p) {
  if (p.kind == Kind::torus) return TorusShape(p.torus);
  return Dragonfly(p.links);
}

// Keeps references to both.
template <class Shape>
void add(pdes::Simulation& simulation, const Parameters& p, const Shape& shape) {
  if (p.transfer + p.wire < simulation.options().lookahead)
    throw pdes::Error("--transfer and --wire must together not be below the lookahead");
  simulation.add<Router<Shape>>(shape.routers(), [&](pdes::LpId) { return Router<Shape>(p, shape); });
  simulation.set_neighbours([&shape](pdes::LpId id, const std::function<void(pdes::LpId)>& to) {
    for (std::uint32_t port = 0; port < shape.ports(); ++port) to(shape.opposite(id, port).router);
  });
}

// Packets that each host has got in the time that one takes on a link, since the warm-up.
inline double throughput(const Parameters& p, const pdes::Result& result, std::uint32_t hosts) {
  const double time = (result.reached - p.warm_up) / p.transfer;
  return time > 0 ? static_cast<double>(result.statistics.count_of("delivered_warm")) / hosts / time : 0;
}

}  // namespace network

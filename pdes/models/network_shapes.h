// Shapes of networks of routers: which ports meet, and which way packets go.  A way is a port and a lane: what waits in a
// lane never waits, however indirectly, for itself, so no network of these can be stuck.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "models/torus.h"

namespace network {

inline constexpr std::uint32_t kLanes = 2;

struct Way {
  std::uint32_t port, lane;
};
struct Port {
  pdes::LpId router;
  std::uint32_t port;
};

// First along the row, then along the column, each the shorter way round; one host on each router.
class TorusShape {
 public:
  explicit TorusShape(Torus torus) : torus_(torus) {}

  pdes::LpId routers() const { return torus_.size(); }
  std::uint32_t ports() const { return 4; }
  std::uint32_t hosts() const { return 1; }  // of each router

  // Where the link of a port ends.
  Port opposite(pdes::LpId router, std::uint32_t port) const { return {torus_.neighbour(router, port), port ^ 1}; }

  Way way(pdes::LpId from, pdes::LpId to) const {
    const std::uint32_t x = from % torus_.width, to_x = to % torus_.width;
    return x != to_x ? along(0, x, to_x, torus_.width) : along(2, from / torus_.width, to / torus_.width, torus_.height);
  }

  double mean_hops() const { return mean_distance(torus_.width) + mean_distance(torus_.height); }

  // What each host can send if all send to any: packets in the time that one takes on a link.  All links of a direction
  // have the same share of the hops; for an even length this is the bisection bound, 8 / length.
  double most_throughput() const {
    const double hops = std::max(mean_distance(torus_.width), mean_distance(torus_.height));
    return hops == 0 ? std::numeric_limits<double>::infinity() : 2 / hops;
  }

  // Traffic that is hard for this shape: each row sends almost half its length on, all one way.
  pdes::LpId hard(pdes::LpId from, std::uint64_t) const {
    const std::uint32_t x = from % torus_.width;
    return from - x + (x + hard_distance()) % torus_.width;
  }
  double most_hard_throughput() const {
    return hard_distance() == 0 ? std::numeric_limits<double>::infinity() : 1.0 / hard_distance();
  }

 private:
  std::uint32_t hard_distance() const { return (torus_.width - 1) / 2; }

  // Where both ways are as long, every other router takes the other one.  Lane 1 is for packets that have yet to cross
  // from the last router to the first or back.
  static Way along(std::uint32_t dimension, std::uint32_t from, std::uint32_t to, std::uint32_t length) {
    const std::uint32_t distance = (to + length - from) % length;
    const bool up = 2 * distance < length || (2 * distance == length && from % 2 == 0);
    return {dimension + (up ? 1 : 0), (up ? to < from : to > from) ? 1u : 0u};
  }
  static double mean_distance(double length) { return std::floor(length / 2) * std::ceil(length / 2) / length; }

  Torus torus_;
};

// Kim, Dally, Scott, Abts 2008: groups of 2h routers, all linked in a group, each with h hosts and h links to other groups,
// and one link between any two groups.  Packets take that link, and at most one hop before and one after it.
class Dragonfly {
 public:
  explicit Dragonfly(std::uint32_t h) : h_(h) {}

  pdes::LpId routers() const { return group_size() * groups(); }
  std::uint32_t ports() const { return group_size() - 1 + h_; }  // to the group's other routers, then to other groups
  std::uint32_t hosts() const { return h_; }

  Port opposite(pdes::LpId router, std::uint32_t port) const {
    const std::uint32_t group = router / group_size(), member = router % group_size();
    if (port < group_size() - 1) {
      const std::uint32_t other = port + (port >= member ? 1 : 0);
      return {group * group_size() + other, port_to(other, member)};
    }
    const std::uint32_t link = member * h_ + port - (group_size() - 1), back = groups() - 2 - link;
    return {(group + 1 + link) % groups() * group_size() + back / h_, group_size() - 1 + back % h_};
  }

  // Lane 1 is for packets in the group where they will stay.
  Way way(pdes::LpId from, pdes::LpId to) const {
    const std::uint32_t group = from / group_size(), member = from % group_size(), to_group = to / group_size();
    if (group == to_group) return {port_to(member, to % group_size()), 1};
    const std::uint32_t link = (to_group + groups() - group - 1) % groups();
    if (link / h_ == member) return {group_size() - 1 + link % h_, 0};
    return {port_to(member, link / h_), 0};
  }

  double mean_hops() const {
    const double inside = 1 - 1.0 / group_size(), same_group = 1.0 / groups();
    return same_group * inside + (1 - same_group) * (1 + 2 * inside);
  }

  // A link between groups has all that one sends to the other.  A link inside has a little more: what goes out by the
  // router at its end, what has come in by that at its start, and what stays.
  double most_throughput() const { return 1 / (2.0 * h_ * h_ / groups() + h_ / static_cast<double>(routers())); }

  // Each group sends to the next, to any of its routers, by the one link there is.
  pdes::LpId hard(pdes::LpId from, std::uint64_t random) const {
    return (from / group_size() + 1) % groups() * group_size() + static_cast<pdes::LpId>(random % group_size());
  }
  double most_hard_throughput() const { return 1.0 / (h_ * group_size()); }

 private:
  std::uint32_t group_size() const { return 2 * h_; }
  std::uint32_t groups() const { return group_size() * h_ + 1; }
  static std::uint32_t port_to(std::uint32_t member, std::uint32_t other) { return other - (other > member ? 1 : 0); }

  std::uint32_t h_;
};

}  // namespace network

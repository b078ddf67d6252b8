// Networks of routers against theory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "models/network.h"
#include "theory.h"

namespace {

using pdes::LpId;
using pdes::Result;
using pdes::test::mean, pdes::test::number, pdes::test::options, pdes::test::run;

// ---- Network

std::vector<network::AnyShape> shapes() {
  return {network::TorusShape({6, 5}), network::TorusShape({8, 1}), network::TorusShape({2, 2}),
          network::TorusShape({1, 1}), network::Dragonfly(1),       network::Dragonfly(2)};
}

TEST(Network, LinksMeetAndWaysAreShortAndHaveTheMeanThatTheBoundsAreMadeOf) {
  for (const network::AnyShape& any : shapes()) {
    std::visit(
        [](const auto& shape) {
          double hops = 0;
          for (LpId from = 0; from < shape.routers(); ++from) {
            for (std::uint32_t port = 0; port < shape.ports(); ++port) {
              const network::Port there = shape.opposite(from, port), back = shape.opposite(there.router, there.port);
              EXPECT_EQ(back.router, from);
              EXPECT_EQ(back.port, port);
            }
            for (LpId to = 0; to < shape.routers(); ++to)
              for (LpId at = from; at != to && hops < 1e6; ++hops) at = shape.opposite(at, shape.way(at, to).port).router;
          }
          EXPECT_NEAR(hops / shape.routers() / shape.routers(), shape.mean_hops(), 1e-12);
        },
        any);
  }
}

// Packets that are where they are because of a link and a lane may wait for those of the next.  Taking away what waits for
// nothing must leave nothing (Dally, Seitz 1987).
TEST(Network, NoLaneWaitsForItself) {
  using Channel = std::vector<std::uint32_t>;  // router, port, lane
  for (const network::AnyShape& any : shapes()) {
    std::map<Channel, std::set<Channel>> waits;
    std::visit(
        [&](const auto& shape) {
          for (LpId from = 0; from < shape.routers(); ++from)
            for (LpId to = 0; to < shape.routers(); ++to) {
              Channel before;
              for (LpId at = from; at != to;) {
                const network::Way way = shape.way(at, to);
                Channel channel{at, way.port, way.lane};
                if (!before.empty()) waits[before].insert(channel);
                waits[channel];
                before = channel;
                at = shape.opposite(at, way.port).router;
              }
            }
        },
        any);
    for (std::size_t size = waits.size() + 1; waits.size() < size;) {
      size = waits.size();
      std::erase_if(waits, [&](const auto& channel) {
        return std::none_of(channel.second.begin(), channel.second.end(),
                            [&](const Channel& c) { return waits.count(c) != 0; });
      });
    }
    EXPECT_TRUE(waits.empty());
  }
}

Result run_network(const network::Parameters& p, double end) {
  return std::visit(
      [&](const auto& shape) {
        return run(options(end, p.transfer + p.wire), [&](auto& simulation) { network::add(simulation, p, shape); });
      },
      make_shape(p));
}

const network::Parameters kTorus{.torus = {6, 5}}, kDragonfly{.kind = network::Kind::dragonfly};

TEST(Network, WithoutLoadAPacketTakesItsHops) {
  for (network::Parameters p : {kTorus, kDragonfly}) {
    p.load = 1e-6;
    p.packets = 4;
    p.wire = 3.5;
    const Result result = run_network(p, 1e9);
    EXPECT_GT(number(result, "hops"), 100);
    EXPECT_EQ(number(result, "hops"), number(result, "offered"));
    EXPECT_NEAR(result.statistics.at("queueing").least, 0, 1e-6);
    EXPECT_NEAR(result.statistics.at("queueing").most, 0, 1e-6);
    EXPECT_NEAR(mean(result, "latency"), mean(result, "hops") * 4.5, 1e-6);
  }
}

// With one buffer and more packets than fit: none is lost, none is stuck, and all credits come home.
TEST(Network, KeepsItsPacketsAndCredits) {
  for (network::Parameters p : {kTorus, kDragonfly}) {
    p.load = 3;
    p.packets = 100;
    p.buffers = 1;
    const Result result = run_network(p, 1e9);
    const double routers = p.kind == network::Kind::torus ? 30 : 36, ports = p.kind == network::Kind::torus ? 4 : 5;
    EXPECT_EQ(result.total.dropped, 0u);
    EXPECT_GT(number(result, "refused"), 0);
    EXPECT_EQ(number(result, "offered"), 100 * routers * (p.kind == network::Kind::torus ? 1 : 2));
    EXPECT_EQ(number(result, "hops"), number(result, "offered") - number(result, "refused"));
    EXPECT_EQ(number(result, "waiting"), 0);
    EXPECT_EQ(number(result, "credits"), routers * ports * network::kLanes);
  }
}

double network_throughput(const network::Parameters& p) {
  const std::uint32_t hosts = p.kind == network::Kind::torus ? p.torus.size() : 72;
  return network::throughput(p, run_network(p, 1100), hosts);
}

TEST(Network, NeverCarriesMoreThanItsLinks) {
  network::Parameters torus{.torus = {8, 8}, .load = 2}, dragonfly{.kind = network::Kind::dragonfly, .load = 2};
  const double torus_bound = network::TorusShape(torus.torus).most_throughput();
  const double dragonfly_bound = network::Dragonfly(2).most_throughput();
  EXPECT_DOUBLE_EQ(torus_bound, 1);  // 8 / length
  EXPECT_NEAR(dragonfly_bound, 1.0 / (8.0 / 9 + 2.0 / 36), 1e-12);
  for (const auto& [p, bound] : {std::pair{torus, torus_bound}, std::pair{dragonfly, dragonfly_bound}}) {
    const double carried = network_throughput(p);
    EXPECT_LT(carried, bound);
    EXPECT_GT(carried, 0.6 * bound);
  }
}

// One link, or each link of a row, has all the traffic there is and never rests.
TEST(Network, HardTrafficFillsTheLinksItHas) {
  const network::Parameters torus{.torus = {8, 2}, .traffic = network::Traffic::hard, .load = 2};
  const network::Parameters dragonfly{.kind = network::Kind::dragonfly, .traffic = network::Traffic::hard, .load = 2};
  EXPECT_NEAR(network_throughput(torus), 1.0 / 3, 0.002);
  EXPECT_NEAR(network_throughput(dragonfly), 1.0 / 8, 0.002);
}

// Little load: what is offered is carried.
TEST(Network, CarriesWhatIsOffered) {
  const network::Parameters p{.torus = {8, 8}, .load = 0.3};
  EXPECT_NEAR(network_throughput(p), 0.3, 4 * std::sqrt(0.3 / 64 / 1000));
}

}  // namespace

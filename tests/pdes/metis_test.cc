// METIS divides graphs well, quietly, and the same way each time.
#include "pdes/metis.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/owners.h"
#include "simulations.h"

namespace pdes {
namespace {

using Owners = std::vector<std::uint16_t>;
using Links = std::vector<std::pair<LpId, LpId>>;

struct Metis : testing::Test {
  void SetUp() override {
    const std::string missing = test::error_of([] { metis_partitioner()(graph_of(3, [](LpId, const auto&) {}), 2); });
    if (missing != "no error") GTEST_SKIP() << missing;
  }
};

// One that is named by both ends of each link.
LpGraph graph_with(LpId lps, const Links& links) {
  return graph_of(lps, [&](LpId id, const auto& to) {
    for (const auto& [a, b] : links)
      if (a == id || b == id) to(a ^ b ^ id);
  });
}

// The weight of the links between threads.
std::uint64_t cut(const LpGraph& graph, const Owners& owner) {
  std::uint64_t twice = 0;
  for (LpId id = 0; id < graph.size(); ++id)
    for (std::uint64_t i = graph.first[id]; i < graph.first[id + 1]; ++i)
      if (owner[id] != owner[graph.to[i]]) twice += graph.weights[i];
  return twice / 2;
}

std::size_t most_on_one(const Owners& owner, unsigned threads) {
  std::vector<std::size_t> lps(threads);
  for (const auto thread : owner) ++lps.at(thread);
  return *std::max_element(lps.begin(), lps.end());
}

// Groups in which all are linked; each is linked once to the next.  Ids are shuffled.
constexpr LpId kGroup = 12;
Links groups(LpId count) {
  std::vector<LpId> id(std::size_t{count} * kGroup);
  std::iota(id.begin(), id.end(), LpId{0});
  Stream stream(1, 0, 0);
  Random random(stream, Generator::splitmix);
  for (std::size_t i = id.size(); i > 1; --i) std::swap(id[i - 1], id[random.integer(i)]);
  Links links;
  for (LpId group = 0; group < count; ++group) {
    const LpId first = group * kGroup;
    for (LpId a = 0; a < kGroup; ++a)
      for (LpId b = 0; b < a; ++b) links.push_back({id[first + a], id[first + b]});
    if (group > 0) links.push_back({id[first - 1], id[first]});
  }
  return links;
}

TEST_F(Metis, FindsTheLinksThatKeepGroupsTogether) {
  for (const unsigned threads : {2u, 4u, 8u, 9u, 16u}) {
    const LpGraph graph = graph_with(threads * kGroup, groups(threads));
    const Owners owner = metis_partitioner()(graph, threads);
    EXPECT_EQ(cut(graph, owner), 2 * (threads - 1)) << threads;  // both ends may send
    EXPECT_EQ(most_on_one(owner, threads), kGroup) << threads;
    EXPECT_EQ(metis_partitioner()(graph, threads), owner) << threads;
  }
}

// A ring of four has two fair cuts.
TEST_F(Metis, CutsWhatIsLight) {
  for (const LpId heavy : {0u, 1u}) {
    const LpGraph graph = graph_of(4, [=](LpId id, const auto& to) {
      for (int times = id % 2 == heavy ? 10 : 1; times > 0; --times) to((id + 1) % 4);
    });
    EXPECT_EQ(cut(graph, metis_partitioner()(graph, 2)), 2u);
  }
}

TEST_F(Metis, TakesGraphsOfAnyShape) {
  Links star;
  for (LpId id = 1; id < 100; ++id) star.push_back({0, id});
  testing::internal::CaptureStdout();
  for (const LpId lps : {1u, 2u, 3u, 5u, 17u, 100u}) {
    Links near_star;
    std::copy_if(star.begin(), star.end(), std::back_inserter(near_star), [=](auto link) { return link.second < lps; });
    for (const Links& links : {Links{}, near_star, Links{{0, lps - 1}}}) {
      for (const unsigned threads : {2u, 3u, 7u, 8u, 9u, 16u, 64u, 4096u}) {
        const Owners owner = metis_partitioner()(graph_with(lps, links), threads);
        ASSERT_EQ(owner.size(), lps);
        EXPECT_LE(most_on_one(owner, threads), std::max(4.0, std::ceil(1.5 * lps / threads))) << lps << " on " << threads;
      }
    }
  }
  std::printf("still there");
  std::fflush(stdout);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "still there");
}

struct Token {};

// Sends to one of those it is linked with.
struct Member {
  using Context = pdes::Context<Token>;
  const LpGraph* graph;
  void start(Context& context) { context.send_self(context.random().exponential(1), Token{}); }
  void on(Context& context, const Token&) {
    auto random = context.random();
    const std::uint64_t first = graph->first[context.id()], links = graph->first[context.id() + 1] - first;
    context.send(graph->to[first + random.integer(links)], 1 + random.exponential(1), Token{});
  }
};

TEST_F(Metis, SparesEventsTheWayToOtherThreadsAndChangesNoResult) {
  constexpr LpId kGroups = 4, kLps = kGroups * kGroup;
  const LpGraph graph = graph_with(kLps, groups(kGroups));
  const auto run = [&](unsigned threads, Sync sync, Partitioning partitioning) {
    Simulation simulation({.end = 200,
                           .lookahead = 1,
                           .threads = threads,
                           .sync = sync,
                           .partitioning = partitioning,
                           .balance = Balance::off});
    simulation.add<Member>(kLps, [&](LpId) { return Member{&graph}; });
    simulation.set_neighbours([&](LpId id, const auto& to) {
      for (std::uint64_t i = graph.first[id]; i < graph.first[id + 1]; ++i) to(graph.to[i]);
    });
    return simulation.run();
  };
  const Result alone = run(1, Sync::windows, Partitioning::blocks);
  for (const unsigned threads : {2u, 4u}) {
    for (const Sync sync : {Sync::windows, Sync::neighbours}) {
      const Result blocks = run(threads, sync, Partitioning::blocks), divided = run(threads, sync, Partitioning::graph);
      test::expect_same(divided, alone);
      EXPECT_LT(divided.total.crossed * 10, blocks.total.crossed);
    }
  }
}

TEST_F(Metis, RefusesWhatItCannotCount) {
  LpGraph graph = graph_with(4, {{0, 1}, {1, 2}, {2, 3}});
  graph.weights.assign(graph.weights.size(), std::uint32_t{1} << 29);
  EXPECT_EQ(test::error_of([&] { metis_partitioner()(graph, 2); }),
            "METIS divides graphs with at most 1073741823 links, by their weight, and the LPs have 1610612736");
}

}  // namespace
}  // namespace pdes

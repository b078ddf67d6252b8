// Illnesses against theory, and the graphs and files they spread along.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/epidemic.h"
#include "models/pandemic.h"
#include "simulations.h"
#include "theory.h"

namespace {

using pdes::LpId;
using pdes::Result;
using pdes::test::error_of, pdes::test::expect_near, pdes::test::number, pdes::test::options, pdes::test::run;

// ---- Files and graphs

// A file of that text, for as long as this lives.
class TextFile {
 public:
  explicit TextFile(const std::string& text)
      : path_(std::filesystem::path(testing::TempDir()) / ("pdes_library_" + std::to_string(::getpid()))) {
    std::ofstream(path_) << text;
  }
  ~TextFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

std::set<std::pair<LpId, LpId>> pairs_of(const std::vector<Edge>& edges) {
  std::set<std::pair<LpId, LpId>> pairs;
  for (const Edge& edge : edges) pairs.insert(std::minmax(edge.from, edge.to));
  return pairs;
}

TEST(Graphs, EdgesAreReadAsNetworkxWritesThem) {
  const TextFile file("# a comment\n0 1 {}\n1 2 {'weight': 3}\n\n2 1\n3 3 {}\n4 0");
  const std::vector<Edge> edges = read_edges(file.path());
  EXPECT_EQ(pairs_of(edges), (std::set<std::pair<LpId, LpId>>{{0, 1}, {1, 2}, {0, 4}}));
  EXPECT_EQ(edges.size(), 3u);
  EXPECT_EQ(nodes_of(edges), 5u);
}

TEST(Graphs, RoutesAreReadAsTheyStand) {
  const TextFile file("from,to,passengers\r\n0,2,150\r\n2,0,140 # back\r\n");
  const Graph routes = pandemic::make_routes({.routes = file.path()});
  ASSERT_EQ(routes.size(), 3u);
  ASSERT_EQ(routes.links(0).size(), 1u);
  EXPECT_EQ(routes.links(0)[0].to, 2u);
  EXPECT_EQ(routes.links(0)[0].weight, 150u);
  EXPECT_TRUE(routes.links(1).empty());
  EXPECT_EQ(routes.links(2)[0].weight, 140u);
}

TEST(Graphs, BadFilesAreToldByLine) {
  const std::vector<std::pair<const char*, const char*>> edges{
      {"0 1\n2\n", ":2: there is no number 'to'"},
      {"0 1\n1 x\n", ":2: 'x' is not a whole number from 0 to 67108863 (to)"},
      {"-1 1\n", ":1: '-1' is not"},
      {"\n\n67108864 0\n", ":3: '67108864' is not"},
      {"1.5 2\n", ":1: '1.5' is not"},
      {"# nothing\n", ": has no edges"},
  };
  for (const auto& [text, said] : edges) {
    const TextFile file(text);
    EXPECT_NE(error_of([&] { read_edges(file.path()); }).find(file.path() + said), std::string::npos) << said;
  }
  const std::vector<std::pair<const char*, const char*>> routes{
      {"0,1\n", ":1: there is no number 'passengers'"},
      {"0,1,2,3\n", ":1: '3' is too much"},
      {"from,to,passengers\n4,4,1\n", ":2: a route from a city to itself"},
      {"from,to,passengers\n", ": has no routes"}};
  for (const auto& [text, said] : routes) {
    const TextFile file(text);
    EXPECT_NE(error_of([&] { pandemic::make_routes({.routes = file.path()}); }).find(file.path() + said), std::string::npos)
        << said;
  }
  EXPECT_NE(error_of([] { read_edges("/no/such/file"); }).find("/no/such/file: cannot be read"), std::string::npos);
  EXPECT_NE(error_of([] { read_edges("/"); }).find("/: cannot be read"), std::string::npos);
}

TEST(Graphs, ARegularGraphHasItsDegreeAndNothingOfTheRing) {
  for (const std::uint32_t degree : {1u, 3u, 4u}) {
    pdes::Stream stream(1, 0, 0);
    const auto edges = regular(1000, degree, pdes::Random(stream, pdes::Generator::splitmix));
    EXPECT_EQ(pairs_of(edges).size(), 500u * degree);  // none twice
    const Graph graph(1000, edges, Graph::Ways::both);
    for (LpId node = 0; node < 1000; ++node) EXPECT_EQ(graph.links(node).size(), degree);
    const auto ring_edges = pairs_of(ring(1000, degree));
    std::size_t left = 0;
    for (const auto& pair : pairs_of(edges)) left += ring_edges.count(pair);
    EXPECT_LT(left, 20u);  // degree^2 / 2 by chance
    for (const Edge& edge : edges) EXPECT_NE(edge.from, edge.to);
  }
}

TEST(Graphs, ASmallWorldIsARingWithSomeEdgesElsewhere) {
  const auto edges = pairs_of(ring(1000, 4));
  for (const double rewired : {0.0, 0.2, 1.0}) {
    pdes::Stream stream(1, 0, 0);
    const auto world = pairs_of(small_world(1000, 4, rewired, pdes::Random(stream, pdes::Generator::splitmix)));
    EXPECT_EQ(world.size(), edges.size());
    std::size_t same = 0;
    for (const auto& pair : world) same += edges.count(pair);
    EXPECT_NEAR(static_cast<double>(same), (1 - rewired) * 2000, 4 * std::sqrt(2000 * rewired * (1 - rewired)) + 20);
  }
}

TEST(Graphs, DegreesThatCannotBeAreRefused) {
  EXPECT_THROW(ring(5, 5), pdes::Error);
  EXPECT_THROW(ring(5, 3), pdes::Error);
}

// ---- Epidemic

Result run_epidemic(const epidemic::Parameters& p, const Graph& graph, std::uint64_t seed) {
  return run(options(10000, p.latent, seed), [&](auto& simulation) { epidemic::add(simulation, p, graph); });
}

// Many paths of five people, the first of each infected: it reaches the k-th with probability T^k.
TEST(Epidemic, WalksAlongAPathAsOftenAsItPassesOn) {
  const epidemic::Parameters p{.people = 5000, .infected = 1000};
  std::vector<Edge> edges;
  for (const Edge& edge : path(p.people))
    if (edge.to % 5 != 0) edges.push_back(edge);
  const Graph graph(p.people, edges, Graph::Ways::both);
  const double passes = epidemic::transmissibility(p);
  double all = 0, generations = 0;
  for (int k = 0; k < 5; ++k) {
    all += 1000 * std::pow(passes, k);
    generations += k * std::pow(passes, k) * 1000;
  }
  expect_near({{"recovered", all, 0.01}, {"generations", generations, 0.02}}, [&](std::uint64_t seed) {
    const Result result = run_epidemic(p, graph, seed);
    EXPECT_EQ(number(result, "infected"), 0);
    EXPECT_EQ(number(result, "recovered") + number(result, "susceptible"), p.people);
    return std::vector{number(result, "recovered"), result.statistics.at("generation").sum.value()};
  });
}

// The centre passes it on to all three others before it recovers; these do not decide that independently.
TEST(Epidemic, StarsAreInfectedAsAWholeAsOftenAsTheorySays) {
  const epidemic::Parameters p{.contacts = epidemic::Contacts::star, .people = 4, .infected = 1};
  const double contacts = 1 / p.contact, recovery = 1 / p.recovery;
  double all = 1;
  for (int left = 1; left <= 3; ++left) all *= left * contacts / (left * contacts + recovery);
  const Graph graph = epidemic::make_graph(p, options(1, 0));
  const std::uint64_t runs = 2000;
  double whole = 0;
  for (std::uint64_t seed = 1; seed <= runs; ++seed) whole += number(run_epidemic(p, graph, seed), "recovered") == 4 ? 1 : 0;
  EXPECT_NEAR(whole / runs, all, 4 * std::sqrt(all * (1 - all) / runs));
}

TEST(Epidemic, ReachesTheShareOfARegularGraphThatPercolationSays) {
  const epidemic::Parameters p{.people = 4000, .infected = 80};
  expect_near({{"recovered", p.people * epidemic::final_size(p), 0.01}}, [&](std::uint64_t seed) {
    const Graph graph = epidemic::make_graph(p, options(1, 0, seed));
    return std::vector{number(run_epidemic(p, graph, seed), "recovered")};
  });
}

// ---- Pandemic

Result run_pandemic(const pandemic::Parameters& p, const Graph& routes, double end, std::uint64_t seed) {
  return run(options(end, p.flight, seed), [&](auto& simulation) { pandemic::add(simulation, p, routes); });
}

// Many pairs of cities; a plane leaves each at 1, 2, ... with one of its residents.  Without contacts an infected is still
// ill at time t with probability exp(-t / recovery), wherever he is, and has flown an odd number of times after m planes
// with probability (1 - (1 - 2 / residents)^m) / 2.
TEST(Pandemic, TheIllRecoverAndFlyAsAMarkovChain) {
  const double pairs = 1500, end = 3;  // the planes at 3 are not executed
  std::vector<Edge> edges;
  for (LpId city = 0; city < 2 * pairs; ++city) edges.push_back({city, city ^ 1, 1});
  const Graph routes(2 * static_cast<LpId>(pairs), edges, Graph::Ways::one);
  for (const std::uint32_t residents : {2u, 5u}) {
    const pandemic::Parameters p{.residents = residents,
                                 .sources = static_cast<std::uint32_t>(pairs),
                                 .infected = residents / 2,
                                 .contacts = 0,
                                 .recovery = 3};
    const double ill = pairs * p.infected * std::exp(-end / p.recovery);
    const double away = ill * (1 - std::pow(1 - 2.0 / residents, 2)) / 2;
    expect_near({{"infected", ill, 0.02}, {"infected_away", away, 0.03}}, [&](std::uint64_t seed) {
      const Result result = run_pandemic(p, routes, end, seed);
      EXPECT_EQ(number(result, "aboard"), 0);
      return std::vector{number(result, "infected"), number(result, "infected_away")};
    });
  }
}

// The mean number of infections still to come, by the next change of a Markov process.
double infections_to_come(const pandemic::Parameters& p, unsigned susceptible, unsigned infected) {
  if (infected == 0 || susceptible == 0) return 0;
  const double infection = p.contacts * susceptible / p.residents, recovery = 1 / p.recovery;  // of each infected
  const double next = infection / (infection + recovery);
  return next * (1 + infections_to_come(p, susceptible - 1, infected + 1)) +
         (1 - next) * infections_to_come(p, susceptible, infected - 1);
}

TEST(Pandemic, ACityThatNobodyLeavesInfectsAsManyAsTheMarkovProcess) {
  const pandemic::Parameters p{.residents = 8, .sources = 1000, .infected = 2, .contacts = 0.6, .recovery = 3};
  const Graph routes(1000, {}, Graph::Ways::one);
  expect_near({{"infections", 1000 * infections_to_come(p, 6, 2), 0.01}}, [&](std::uint64_t seed) {
    const Result result = run_pandemic(p, routes, 1000, seed);
    EXPECT_EQ(number(result, "infected"), 0);
    return std::vector{number(result, "infections")};
  });
}

TEST(Pandemic, KeepsItsPeople) {
  const pandemic::Parameters p{.torus = {5, 4}, .residents = 100, .passengers = 30};
  const Graph routes = pandemic::make_routes(p);
  for (const double end : {10.0, 10.1, 10.3}) {
    const Result result = run_pandemic(p, routes, end, 1);
    EXPECT_EQ(
        number(result, "susceptible") + number(result, "infected") + number(result, "recovered") + number(result, "aboard"),
        2000);
    EXPECT_GT(number(result, "infections"), 0);
  }
}

}  // namespace

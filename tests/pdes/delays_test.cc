#include "engine/delays.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "in_process_ranks.h"
#include "pdes/pdes.h"

namespace pdes {
namespace {

DelayRecorder recorder_of(const std::vector<double>& delays) {
  DelayRecorder recorder;
  for (const double delay : delays) recorder.add(delay);
  return recorder;
}
Delays recorded(const std::vector<double>& delays) { return recorder_of(delays).result(); }

TEST(Delays, OfNoEvents) {
  const Delays none = recorded({});
  EXPECT_EQ(none.count, 0u);
  EXPECT_EQ(none.smallest, 0);
  EXPECT_EQ(none.percentile(50), 0);
  EXPECT_EQ(Delays().percentile(50), 0);
}

TEST(Delays, MergedAreAsIfOneHadRecordedAllExactly) {
  DelayRecorder odd = recorder_of({0.5, 0.25});
  odd.merge(recorder_of({2, 1.25}));
  odd.merge(DelayRecorder());
  const Delays delays = odd.result();
  EXPECT_EQ(delays.count, 4u);
  EXPECT_EQ(delays.smallest, 0.25);
  EXPECT_EQ(delays.mean, 1);
  EXPECT_EQ(delays.largest, 2);
  EXPECT_EQ(delays.histogram, recorded({0.25, 0.5, 1.25, 2}).histogram);
}

TEST(Delays, PercentilesAreNearAndNeverBeyondTheExtremes) {
  for (const double unit : {1e-7, 0.1, 3.0, 1e5}) {
    DelayRecorder recorder;
    for (int i = 1000; i >= 1; --i) recorder.add(i * unit);
    const Delays delays = recorder.result();
    for (const double p : {0.1, 1.0, 10.0, 50.0, 90.0, 99.0, 99.9}) {
      EXPECT_NEAR(delays.percentile(p), p * 10 * unit, 0.03 * p * 10 * unit) << p << " of " << unit;
    }
  }
  for (const double only : {1.0, 1e-300, 1e300}) EXPECT_EQ(recorded({only, only}).percentile(50), only);
}

TEST(Delays, BucketsAreA32ndOfAPowerOfTwoAndTheLastTakeAllBeyond) {
  const std::size_t one = 32 * 32, last = 64 * 32 - 1;
  for (const auto& [delay, bucket] : {std::pair{1.0, one},
                                      {1.03, one},
                                      {1.04, one + 1},
                                      {1.99, one + 31},
                                      {2.0, one + 32},
                                      {0.0, 0},
                                      {-0.0, 0},
                                      {1e-300, 0},
                                      {0x1p-40, 0},
                                      {0x1p40, last},
                                      {1e300, last}}) {
    const Delays delays = recorded({delay});
    ASSERT_EQ(delays.histogram.size(), last + 1);
    EXPECT_EQ(delays.histogram[bucket], 1u) << delay;
  }
}

// ---- By link. -----------------------------------------------------------------------------------------------------

struct Ask {};
struct Answer {};
struct Clerk {
  using Context = pdes::Context<Ask, Answer>;
  void start(Context&) {}
  void on(Context& context, const Ask&) {
    context.send(0, 0.5, Answer{});
    context.send((context.id() + 1) % context.lp_count(), 0.75, Answer{});
    context.send_self(0.1, Answer{});  // no link
  }
  void on(Context&, const Answer&) {}
};
struct Asker {
  using Context = Clerk::Context;
  void start(Context& context) {
    for (pdes::LpId id = 1; id < context.lp_count(); ++id) context.send(id, 2 + id, Ask{});
  }
  void on(Context&, const Answer&) {}
};

Delays of_links(pdes::Options how, Ranks* ranks = nullptr) {
  how.end = 100;
  how.lookahead = 0.5;
  how.measure_delays = true;
  Simulation simulation(how);
  simulation.add<Asker>(1, [](LpId) { return Asker(); });
  simulation.add<Clerk>(2, [](LpId) { return Clerk(); });
  simulation.add<Clerk>(3, [](LpId) { return Clerk(); });  // the same class by name
  return simulation.run(ranks).delays;
}

TEST(Delays, AreKnownByClassesAndTypeTheSmallestFirst) {
  const auto expect_all = [](const Delays& delays) {
    using Row = std::tuple<std::string, std::string, std::string, std::uint64_t, double>;
    std::vector<Row> rows;
    for (const auto& link : delays.links) rows.emplace_back(link.from, link.to, link.event, link.count, link.smallest);
    EXPECT_EQ(rows, (std::vector<Row>{{"Clerk", "Asker", "Answer", 6, 0.5},
                                      {"Clerk", "Clerk", "Answer", 4, 0.75},
                                      {"Asker", "Clerk", "Ask", 5, 3}}));
    EXPECT_EQ(delays.count, 15u);
  };
  for (const unsigned threads : {1u, 3u}) expect_all(of_links({.threads = threads}));
  std::vector<Delays> of_ranks(2);
  test::on_ranks(2, [&](std::size_t rank, Ranks& others) { of_ranks[rank] = of_links({.threads = 2}, &others); });
  expect_all(of_ranks[0]);
}

}  // namespace
}  // namespace pdes

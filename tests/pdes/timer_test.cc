// Events that are cancelled by their handle: none of them is handled, whatever became of the timer, on any threads.
#include "pdes/timer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <memory>

#include "simulations.h"

namespace pdes {
namespace {

using test::error_of;
using test::expect_same;

struct Step {
  std::uint32_t number;
};
struct Alarm {
  std::uint32_t number;
};
using TestContext = Context<Step, Cancellable<Alarm>>;
using Heard = std::vector<std::pair<Time, std::uint32_t>>;

// Does something at times 1, 2, 3, ..., and notes the alarms that it hears.
struct Listener {
  using Context = TestContext;
  static constexpr bool kCheckpoints = false;
  std::vector<std::function<void(Listener&, Context&)>> steps;
  Heard* heard;
  Timer timer{};
  std::array<Timer, 3> others{};

  void start(Context& context) { context.send_self(1, Step{0}); }
  void on(Context& context, const Step& step) {
    if (step.number < steps.size()) steps[step.number](*this, context);
    context.send_self(1, Step{step.number + 1});
  }
  void on(Context& context, const Alarm& alarm) { heard->emplace_back(context.now(), alarm.number); }
};

struct Session {
  explicit Session(std::vector<std::function<void(Listener&, TestContext&)>> steps) {
    result = test::run({.end = 20}, 1, [&](LpId) { return Listener{steps, &heard}; });
  }
  Heard heard;
  Result result;
};

TEST(Timer, IsHeardOnceUnlessCancelled) {
  const Session session({[](Listener& lp, TestContext& c) {
                           EXPECT_FALSE(lp.timer.is_set());
                           c.set(lp.timer, 5.5, Alarm{1});
                           c.set(lp.others[0], 5.5, Alarm{2});
                           EXPECT_TRUE(lp.timer.is_set());
                         },
                         [](Listener& lp, TestContext&) {
                           EXPECT_TRUE(lp.others[0].cancel());
                           EXPECT_FALSE(lp.others[0].is_set());
                           EXPECT_FALSE(lp.others[0].cancel());
                         }});
  EXPECT_EQ(session.heard, (Heard{{6.5, 1}}));
  EXPECT_EQ(session.result.total.cancelled, 1u);
  EXPECT_EQ(session.result.events_by_type, (std::vector<std::uint64_t>{19, 2}));
  EXPECT_EQ(session.result.type_names, (std::vector<std::string>{"Step", "Alarm"}));
}

TEST(Timer, SetAnewForgetsWhatItWasSetTo) {
  const Session session({[](Listener& lp, TestContext& c) { c.set(lp.timer, 5.5, Alarm{1}); },
                         [](Listener& lp, TestContext& c) { c.set(lp.timer, 2.5, Alarm{2}); },       // before the old one
                         [](Listener& lp, TestContext& c) { c.set(lp.others[1], 0.25, Alarm{3}); },  // of its own
                         [](Listener&, TestContext&) {},
                         [](Listener& lp, TestContext& c) {
                           EXPECT_FALSE(lp.timer.is_set());
                           EXPECT_TRUE(lp.timer.cancel() == false);
                           c.set(lp.timer, 6.5, Alarm{4});  // after the old one
                         }});
  EXPECT_EQ(session.heard, (Heard{{3.25, 3}, {4.5, 2}, {11.5, 4}}));
  EXPECT_EQ(session.result.total.cancelled, 1u);
}

// Cancelled, set and cancelled again before the first event comes, at the same time as it, and after it.
TEST(Timer, NeverHearsAnOldLife) {
  const Session session({[](Listener& lp, TestContext& c) {
                           for (std::uint32_t i = 0; i < 5; ++i) {
                             c.set(lp.timer, 3.5, Alarm{i});
                             if (i % 2 == 0) lp.timer.cancel();
                           }
                           c.set(lp.timer, 3.5, Alarm{5});
                         },
                         [](Listener& lp, TestContext& c) {
                           lp.timer.cancel();
                           c.set(lp.timer, 2.5, Alarm{6});
                         }});
  EXPECT_EQ(session.heard, (Heard{{4.5, 6}}));
  EXPECT_EQ(session.result.total.cancelled, 6u);
}

TEST(Timer, IsNotNeededForAnEventOfThatType) {
  const Session session({[](Listener& lp, TestContext& c) {
    c.send_self(0.5, Alarm{1});
    c.send(c.id(), 0.75, Alarm{2});
    EXPECT_FALSE(lp.timer.is_set());
  }});
  EXPECT_EQ(session.heard, (Heard{{1.5, 1}, {1.75, 2}}));
}

TEST(Timer, BeyondTheEndIsDropped) {
  const Session session({[](Listener& lp, TestContext& c) { c.set(lp.timer, 100, Alarm{1}); }});
  EXPECT_TRUE(session.heard.empty());
  EXPECT_EQ(session.result.total.dropped, 2u);  // and the last step
}

TEST(Timer, ElsewhereThanInItsLpIsRefused) {
  const auto refused = [](const std::function<Timer&(Listener&)>& which) {
    return error_of([&] { Session({[&](Listener& lp, TestContext& c) { c.set(which(lp), 1, Alarm{1}); }}); });
  };
  const std::string kWhy = "LP 0 (Listener), at time 1 on Step from LP 0, sets a timer that is no member of it";
  Timer global;
  const auto heap = std::make_unique<Timer>();
  EXPECT_EQ(refused([&](Listener&) -> Timer& { return global; }), kWhy);
  EXPECT_EQ(refused([&](Listener&) -> Timer& { return *heap; }), kWhy);
  EXPECT_EQ(refused([](Listener& lp) -> Timer& { return reinterpret_cast<Timer*>(&lp)[-1]; }), kWhy);
  EXPECT_EQ(refused([](Listener& lp) -> Timer& { return *reinterpret_cast<Timer*>(&lp + 1); }), kWhy);
  EXPECT_EQ(refused([](Listener& lp) -> Timer& { return *reinterpret_cast<Timer*>(reinterpret_cast<char*>(&lp + 1) - 4); }),
            kWhy);
  EXPECT_EQ(refused([](Listener& lp) -> Timer& { return lp.others[2]; }), "no error");
}

// ---- Stop and wait, with timers against what is lost: known in theory. --------------------------------------------

struct Packet {};
struct Ack {};
struct Timeout {};
using WireContext = Context<Packet, Ack, Cancellable<Timeout>>;

constexpr Time kWire = 1, kPatience = 3;
constexpr double kLoss = 0.2;

// Both ends of a wire to its partner: sends a packet until it is acknowledged, then the next; half of the LPs send.
struct Station {
  using Context = WireContext;
  Timer timeout{};
  Time began = 0;
  BatchMeans took{50};

  bool sends(const Context& context) const { return context.id() % 2 == 0; }
  void start(Context& context) {
    if (sends(context)) try_now(context);
  }
  void try_now(Context& context) {
    if (!context.random().chance(kLoss)) context.send(context.id() ^ 1, kWire, Packet{});
    context.set(timeout, kPatience, Timeout{});
  }
  void on(Context& context, const Packet&) {
    if (!context.random().chance(kLoss)) context.send(context.id() ^ 1, kWire, Ack{});
  }
  void on(Context& context, const Ack&) {
    EXPECT_TRUE(timeout.cancel());
    took.add(context.now() - began);
    began = context.now();
    try_now(context);
  }
  void on(Context& context, const Timeout&) { try_now(context); }
  void report(Report& report) const {
    if (took.batches() > 0) report.interval("took", took);
  }
};

Result stop_and_wait(Options how) {
  how.end = 4000;
  how.lookahead = kWire;
  how.max_memory = 16 << 20;  // if old timers were heard, they would set ever more
  return test::run(how, 40, [](LpId) { return Station{}; });
}

TEST(Timer, StopAndWaitTakesAsLongAsInTheory) {
  const double success = (1 - kLoss) * (1 - kLoss);
  const double expected = 2 * kWire + kPatience * (1 - success) / success;
  const Result result = stop_and_wait({});
  const Report::Number& took = result.statistics.at("took");
  EXPECT_GT(took.count, 300);
  EXPECT_LT(took.half_width(), 0.1);
  EXPECT_NEAR(took.mean(), expected, 2 * took.half_width());
}

TEST(Timer, ComesToTheSameOnAnyThreads) {
  const Result alone = stop_and_wait({});
  EXPECT_GT(alone.total.cancelled, 10'000u);
  for (const Options& how : {Options{.threads = 2}, Options{.threads = 3, .queue = Queue::heap},
                             Options{.threads = 3, .sync = Sync::neighbours, .partitioning = Partitioning::random}}) {
    const Result result = stop_and_wait(how);
    expect_same(result, alone);
    EXPECT_EQ(result.total.cancelled, alone.total.cancelled);
  }
}

TEST(Timer, GoesOnFromACheckpoint) {
  const Result whole = stop_and_wait({});
  const std::string path = testing::TempDir() + "timer_test." + std::to_string(getpid());
  Simulation simulation(
      {.end = 4000, .lookahead = kWire, .progress_interval = 0, .max_simultaneous = 100, .checkpoint = path});
  simulation.add<Station>(40, [](LpId) { return Station{}; });
  simulation.on_progress([&](const Progress& progress) {
    if (progress.now > 1000) simulation.stop();
  });
  ASSERT_TRUE(simulation.run().stopped);
  for (const unsigned threads : {1u, 3u}) {
    const Result rest = stop_and_wait({.threads = threads, .resume = path});
    expect_same(rest, whole);
    EXPECT_EQ(rest.total.cancelled, whole.total.cancelled);
  }
  std::remove(path.c_str());
}

}  // namespace
}  // namespace pdes

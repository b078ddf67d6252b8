// The C interface: a model in C beside the same in C++, and what goes wrong.
#include "pdes/foreign.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "foreign_model.h"
#include "simulations.h"

namespace {

struct Hop {
  std::int64_t hops;
  char letter;
};

class Node {
 public:
  using Context = pdes::Context<Hop>;
  explicit Node(int events) : events_(events) {}

  void start(Context& context) {
    delays_ = context.stream(1);
    for (std::int64_t i = 0; i < events_; ++i) context.send_self(delay(context), Hop{i, 'a'});
  }
  void on(Context& context, const Hop& hop) {
    auto random = context.random();
    const auto to = random.uniform() < 0.5 ? static_cast<pdes::LpId>(random.integer(context.lp_count())) : context.id();
    hops_.add(static_cast<double>(hop.hops));
    context.send(to, delay(context), Hop{hop.hops + 1, hop.letter});
  }
  void report(pdes::Report& report) const {
    report.count("events", static_cast<std::int64_t>(hops_.count()));
    report.sum("sum", hops_.sum());
    report.tally("hops", hops_);
  }

 private:
  double delay(Context& context) {
    return context.lookahead() + context.random(delays_).exponential(1 - context.lookahead());
  }
  int events_;
  pdes::Stream delays_;
  pdes::Tally hops_;
};

using Foreign = std::unique_ptr<hm_pdes, decltype(&hm_pdes_free)>;
Foreign made(const std::string& options) { return {hm_pdes_new(options.c_str()), &hm_pdes_free}; }

constexpr hm_pdes_tally kNone{0, 0, INFINITY, -INFINITY};

// 20 LPs, of which every second starts with three events and the others with two.
std::vector<state> states(std::int64_t fault = 0) {
  std::vector<state> all;
  for (int i = 0; i < 20; ++i) all.push_back({2 + i % 2, fault, kNone});
  return all;
}

Foreign model(const std::string& options, std::vector<state>& finals, std::int64_t fault = 0) {
  Foreign simulation = made(options);
  finals = states(fault);
  hm_pdes_event_type(simulation.get(), "Hop", sizeof(hop));
  hm_pdes_class nodes = foreign_nodes;
  nodes.states = nodes.finals = finals.data();
  hm_pdes_add(simulation.get(), &nodes, static_cast<std::uint32_t>(finals.size()));
  return simulation;
}

class ForeignModel : public testing::TestWithParam<const char*> {};

TEST_P(ForeignModel, HasTheDigestOfTheSameInCxx) {
  pdes::Options options{.end = 50, .lookahead = 0.25, .seed = 3};
  const std::string words = GetParam();
  if (words.find("philox") != words.npos) options.generator = pdes::Generator::philox;
  const auto expected = pdes::test::run(options, 20, [](pdes::LpId id) { return Node(2 + static_cast<int>(id % 2)); });

  std::vector<state> finals;
  const Foreign simulation = model("end=50 lookahead=0.25 seed=3 " + words, finals);
  const hm_pdes_result* result = hm_pdes_run(simulation.get());
  ASSERT_NE(result, nullptr) << hm_pdes_error(simulation.get());
  EXPECT_EQ(result->digest, expected.digest);
  EXPECT_EQ(result->events_by_type[0], expected.events_by_type[0]);
  ASSERT_EQ(result->statistic_count, 3u);
  EXPECT_EQ(result->statistics[2].most, expected.statistics.at("hops").most);
  std::int64_t events = 0;
  for (const state& final : finals) events += final.hops.count;
  EXPECT_EQ(static_cast<std::uint64_t>(events), result->events);
}
INSTANTIATE_TEST_SUITE_P(Options, ForeignModel,
                         testing::Values("", "threads=2", "generator=philox", "queue=heap partition=random threads=3"));

TEST(ForeignResult, HasWhatEachThreadDidAndForWhomItWaited) {
  std::vector<state> finals;
  const Foreign simulation = model("end=400 lookahead=0.25 threads=2 gather=off interval=1e-9", finals);
  struct Seen {
    std::uint64_t calls = 0, events = 0, windows = 0;
    double blocked_s = 0;
  } seen;
  hm_pdes_on_progress(
      simulation.get(),
      [](void* context, const hm_pdes_progress* at) {
        auto* last = static_cast<Seen*>(context);
        ++last->calls;
        ASSERT_EQ(at->thread_count, 2u);
        ASSERT_GE(at->thread_events[0] + at->thread_events[1], last->events);
        ASSERT_GE(at->blocked_s[0] + at->blocked_s[1], last->blocked_s);
        ASSERT_TRUE(at->windows == 0 || at->window > 0);
        ASSERT_GE(at->windows, last->windows);
        *last = {last->calls, at->thread_events[0] + at->thread_events[1], at->windows, at->blocked_s[0] + at->blocked_s[1]};
      },
      &seen);
  const hm_pdes_result* result = hm_pdes_run(simulation.get());
  ASSERT_NE(result, nullptr) << hm_pdes_error(simulation.get());
  EXPECT_GT(seen.calls, 1u);
  EXPECT_GT(seen.events, 0u);
  EXPECT_LE(seen.events, result->events);
  EXPECT_GT(seen.windows, 0u);
  EXPECT_LE(seen.windows, result->windows);
  ASSERT_EQ(result->thread_count, 2u);
  EXPECT_EQ(result->threads[0].events + result->threads[1].events, result->events);
  for (std::uint64_t i = 0; i < 2; ++i) {
    const hm_pdes_thread& thread = result->threads[i];
    EXPECT_GT(thread.events, 0u);
    EXPECT_GT(thread.working_s, 0.0);
    ASSERT_EQ(thread.waited_on_count, 2u);
    EXPECT_EQ(thread.waited_on[i], 0.0);
    EXPECT_LE(thread.waited_on[1 - i], thread.blocked_s * 1.001);
  }
  EXPECT_EQ(result->rank_count, 1u);
  EXPECT_EQ(result->ended_by_model, 0u);
}

// The name of a file as an option has it.
std::string word(std::string name) {
  for (std::size_t at = 0; (at = name.find_first_of(" \\", at)) != name.npos; at += 2) name.insert(at, 1, '\\');
  return name;
}

TEST(ForeignCheckpoint, ARunGoesOnWithOtherThreads) {
  const std::string file = testing::TempDir() + "foreign \\ " + std::to_string(getpid()),
                    options = "end=500 lookahead=0.25 ";
  std::vector<state> expected, finals;
  const Foreign whole = model(options, expected);
  const hm_pdes_result* wanted = hm_pdes_run(whole.get());
  ASSERT_NE(wanted, nullptr);
  const Foreign stopped = model(options + "threads=2 interval=1e-9 model=hops checkpoint=" + word(file), finals);
  hm_pdes_on_progress(
      stopped.get(), [](void* context, const hm_pdes_progress*) { hm_pdes_stop(static_cast<hm_pdes*>(context)); },
      stopped.get());
  int saved = 0;
  hm_pdes_on_save(
      stopped.get(), [](void* context, double, const char* error) { *static_cast<int*>(context) += error == nullptr; },
      &saved);
  const hm_pdes_result* part = hm_pdes_run(stopped.get());
  ASSERT_NE(part, nullptr) << hm_pdes_error(stopped.get());
  EXPECT_EQ(saved, 1);
  EXPECT_EQ(part->checkpoints, 1u);

  const Foreign resumed = model(options + "threads=3 model=hops resume=" + word(file), finals);
  const hm_pdes_result* result = hm_pdes_run(resumed.get());
  ASSERT_NE(result, nullptr) << hm_pdes_error(resumed.get());
  EXPECT_EQ(result->digest, wanted->digest);
  EXPECT_EQ(result->events, wanted->events);
  EXPECT_EQ(result->events_before, part->events);
  EXPECT_LT(result->events_before, wanted->events);
  for (std::size_t i = 0; i < finals.size(); ++i) EXPECT_EQ(finals[i].hops.count, expected[i].hops.count);
  std::remove(file.c_str());
}

TEST(ForeignCheckpoint, IsRefusedWhereItWouldLackSomething) {
  std::vector<state> finals = states();
  const Foreign simulation = made("end=1 checkpoint=" + word(testing::TempDir() + "never"));
  hm_pdes_event_type(simulation.get(), "Hop", sizeof(hop));
  hm_pdes_class nodes = foreign_nodes;
  nodes.unsaved = "they live elsewhere";
  hm_pdes_add(simulation.get(), &nodes, 20);
  EXPECT_EQ(hm_pdes_run(simulation.get()), nullptr);
  EXPECT_STREQ(hm_pdes_error(simulation.get()), "LPs of class Node cannot be saved: they live elsewhere");
}

// What of a model lies elsewhere: a text.
struct Elsewhere {
  std::string text, fault;
  std::string failure;  // of a checkpoint

  void announce(hm_pdes* simulation) {
    const auto save = [](void* context, size_t* size, const char** why_not) -> const void* {
      const auto& self = *static_cast<Elsewhere*>(context);
      if (self.fault == "save") *why_not = "it is lost";
      if (!self.fault.empty()) return nullptr;
      *size = self.text.size();
      return self.text.data();
    };
    const auto load = [](void* context, const void* bytes, size_t size) -> const char* {
      auto& self = *static_cast<Elsewhere*>(context);
      if (self.fault == "load") return "it means nothing here";
      self.text.assign(static_cast<const char*>(bytes), size);
      return nullptr;
    };
    hm_pdes_on_checkpoint(simulation, save, load, this);
    const auto note = [](void* context, double, const char* error) {
      if (error != nullptr) static_cast<Elsewhere*>(context)->failure = error;
    };
    hm_pdes_on_save(simulation, note, this);
  }
};

TEST(ForeignCheckpoint, HasWhatOfAModelLiesElsewhere) {
  const std::string file = testing::TempDir() + "elsewhere" + std::to_string(getpid());
  std::vector<state> finals;
  const auto saved = [&](const std::string& fault) {
    const Foreign stopped = model("end=500 lookahead=0.25 threads=2 checkpoint=" + word(file), finals);
    Elsewhere elsewhere{"what it was", fault, {}};
    elsewhere.announce(stopped.get());
    hm_pdes_stop(stopped.get());
    EXPECT_NE(hm_pdes_run(stopped.get()), nullptr) << hm_pdes_error(stopped.get());
    return elsewhere.failure;
  };
  EXPECT_EQ(saved("save"), "an LP cannot be saved: it is lost");
  EXPECT_EQ(saved("silent"), "an LP cannot be saved: it does not say why");
  EXPECT_EQ(saved(""), "");
  const auto resumed = [&](Elsewhere* elsewhere) -> std::string {
    const Foreign simulation = model("end=500 lookahead=0.25 threads=3 resume=" + word(file), finals);
    if (elsewhere != nullptr) elsewhere->announce(simulation.get());
    hm_pdes_run(simulation.get());
    return hm_pdes_error(simulation.get());
  };
  Elsewhere elsewhere{}, faulty{.text = {}, .fault = "load", .failure = {}};
  EXPECT_EQ(resumed(&elsewhere), "");
  EXPECT_EQ(elsewhere.text, "what it was");
  EXPECT_EQ(resumed(&faulty), file + " cannot be resumed: it means nothing here");
  EXPECT_EQ(resumed(nullptr), file + " is of another simulation: it has more than LPs and events");
  std::remove(file.c_str());
}

TEST(ForeignStreams, AreThoseOfCxx) {
  struct Draws {
    std::uint64_t of_stream[3];
  };
  for (const auto& [name, generator] :
       {std::pair{"splitmix", pdes::Generator::splitmix}, std::pair{"philox", pdes::Generator::philox}}) {
    const Foreign simulation = made(std::string("end=1 seed=7 generator=") + name);
    Draws drawn[2] = {};
    hm_pdes_class described{};
    described.name = "Drawer";
    described.size = sizeof(Draws);
    described.streams = 2;
    described.start = [](hm_pdes_lp* lp, void* state, const void*) {
      for (std::uint32_t i = 0; i < 3; ++i) static_cast<Draws*>(state)->of_stream[i] = hm_pdes_bits(lp, i);
      return 1;
    };
    described.finals = drawn;
    hm_pdes_add(simulation.get(), &described, 2);
    ASSERT_NE(hm_pdes_run(simulation.get()), nullptr) << hm_pdes_error(simulation.get());
    for (pdes::LpId lp = 0; lp < 2; ++lp) {
      for (std::uint32_t i = 0; i < 3; ++i) {
        pdes::Stream stream(7, lp, i);
        EXPECT_EQ(drawn[lp].of_stream[i], pdes::Random(stream, generator).bits()) << name << ' ' << lp << ' ' << i;
      }
    }
  }
}

TEST(ForeignStates, AreAtTheEndWhatTheirReportLeavesThem) {
  const Foreign simulation = made("end=1");
  std::int64_t last = 0;
  hm_pdes_class described{};
  described.name = "Counted";
  described.size = sizeof last;
  described.finals = &last;
  described.report = [](hm_pdes_report*, void* state) { return static_cast<int>(*static_cast<std::int64_t*>(state) += 1); };
  hm_pdes_add(simulation.get(), &described, 1);
  ASSERT_NE(hm_pdes_run(simulation.get()), nullptr) << hm_pdes_error(simulation.get());
  EXPECT_EQ(last, 1);
}

// A clock that sets an alarm at each tick, half of which it cancels, and observes what it hears.
struct Alarm {
  double value;
  hm_pdes_setting setting;
};
struct Clock {
  hm_pdes_timer timer;
  hm_pdes_histogram heard;
  hm_pdes_level ticks;
  hm_pdes_batch_means means;
  std::int64_t fault;
};

const hm_pdes_handler kClockHandlers[] = {
    [](hm_pdes_lp* lp, void* state, const void*) {
      Clock& clock = *static_cast<Clock*>(state);
      Alarm alarm{lp->now, {}};
      const Alarm other{lp->now, {HM_PDES_NO_TIMER, 0}};
      if (clock.timer.set != 0) clock.timer.set = 0;
      else hm_pdes_set_timer(lp, &clock.timer, lp->now < 50 ? 0.5 : 1.5, clock.fault == 1 ? 0 : 1, &alarm, 0);
      hm_pdes_send(lp, lp->id, 1.25, 1, &other, 0);  // which is not cancelled
      hm_pdes_send(lp, lp->id, 1, 0, nullptr, 0);
      return 1;
    },
    [](hm_pdes_lp*, void* state, const void* event) {
      const auto* clock = static_cast<const Clock*>(state);
      if (clock->fault == 2) return 1;
      return hm_pdes_histogram_add(&clock->heard, static_cast<const Alarm*>(event)->value);
    }};

Foreign clocks(std::int32_t number, std::int64_t fault) {
  Foreign simulation = made("end=100.25 lookahead=1");
  hm_pdes_event_type(simulation.get(), "Tick", 0);
  hm_pdes_cancellable_type(simulation.get(), "Alarm", sizeof(Alarm));
  const Clock clock{.timer = {},
                    .heard = {number, offsetof(Clock, heard)},
                    .ticks = {2, 0, 0, 2, 2, 0},
                    .means = {5, 2, 0, 0, 3, 5, 1, 2},
                    .fault = fault};
  hm_pdes_class described{};
  described.name = "Clock";
  described.size = sizeof clock;
  described.histograms = 1;
  described.start = [](hm_pdes_lp* lp, void*, const void*) {
    hm_pdes_send(lp, lp->id, 1, 0, nullptr, 0);
    return 1;
  };
  described.handlers = kClockHandlers;
  described.report = [](hm_pdes_report* report, void* state) {
    const auto* of = static_cast<const Clock*>(state);
    if (of->heard.number != 1) hm_pdes_report_histogram(report, "heard", &of->heard);
    hm_pdes_report_level(report, "ticks", &of->ticks);
    hm_pdes_report_interval(report, "means", &of->means);
    return 1;
  };
  described.states = &clock;
  described.shared = 1;
  hm_pdes_add(simulation.get(), &described, 2);
  return simulation;
}

TEST(ForeignMembers, AreTimersAndWhatCxxObservesWith) {
  const Foreign simulation = clocks(0, 0);
  const hm_pdes_result* result = hm_pdes_run(simulation.get());
  ASSERT_NE(result, nullptr) << hm_pdes_error(simulation.get());
  // Until time 50 the timer rings before the next tick; then each second tick cancels it.
  EXPECT_EQ(result->cancelled, 2 * 25u);
  ASSERT_EQ(result->statistic_count, 3u);
  const hm_pdes_statistic& heard = result->statistics[0];
  EXPECT_EQ(heard.kind, HM_PDES_HISTOGRAM);
  EXPECT_EQ(heard.count, 2 * (49 + 98));
  EXPECT_NEAR(hm_pdes_quantile(&heard, 0.5), 37, 2);
  EXPECT_EQ(heard.most, 98);
  const hm_pdes_statistic& ticks = result->statistics[1];
  EXPECT_STREQ(ticks.name, "ticks");
  EXPECT_EQ(ticks.kind, HM_PDES_LEVEL);
  EXPECT_EQ(ticks.time, 2 * 100.25);
  EXPECT_EQ(ticks.sum, 2 * ticks.time);
  const hm_pdes_statistic& means = result->statistics[2];
  EXPECT_EQ(means.kind, HM_PDES_INTERVAL);
  EXPECT_EQ(means.batch_size, 5u);
  EXPECT_NEAR(means.half_width, 3.1824 * std::sqrt(1.0 / 3 / 4), 1e-3);  // of 1, 2, 1, 2
  const hm_pdes_batch_means alone{5, 2, 0, 0, 3, 5, 1, 2};
  EXPECT_NEAR(hm_pdes_half_width(&alone), 12.7062 * 0.5, 1e-3);
}

TEST(ForeignMembers, ThatCannotBeAreTheErrorOfTheRun) {
  for (const auto& [number, fault, said] :
       {std::tuple(1, 0, "LP 0 (Clock), at time 1.5 on Alarm from LP 0, failed"),
        std::tuple(-1, 0, "LP 0 (Clock), at time 1.5 on Alarm from LP 0, failed"),
        std::tuple(-1, 2, "LP 0 (Clock), at the end: LP 0 has no histogram -1"),
        std::tuple(
            0, 1, "LP 0 (Clock), at time 1 on Tick from LP 0, sets a timer to an event of type 0, which none can cancel")}) {
    const Foreign simulation = clocks(number, fault);
    EXPECT_EQ(hm_pdes_run(simulation.get()), nullptr);
    EXPECT_STREQ(hm_pdes_error(simulation.get()), said);
  }
  const Foreign small = made("end=1");
  hm_pdes_cancellable_type(small.get(), "Small", 4);
  EXPECT_STREQ(hm_pdes_error(small.get()), "event Small has no room for the setting of its timer");
}

class Fault : public testing::TestWithParam<std::tuple<int, const char*>> {};

TEST_P(Fault, IsTheErrorOfTheRun) {
  const auto& [fault, said] = GetParam();
  std::vector<state> finals;
  const Foreign simulation = model("end=50 lookahead=0.25", finals, fault);
  EXPECT_EQ(hm_pdes_run(simulation.get()), nullptr);
  EXPECT_NE(std::string(hm_pdes_error(simulation.get())).find(said), std::string::npos) << hm_pdes_error(simulation.get());
}
INSTANTIATE_TEST_SUITE_P(Faults, Fault,
                         testing::Values(std::tuple(1, " on Hop from LP "), std::tuple(1, ", failed"),
                                         std::tuple(2, ", failed: as was asked for"),
                                         std::tuple(3, ", sends Hop to LP -1: there are only "),
                                         std::tuple(4, "an event of type 1: there is none"),
                                         std::tuple(5, "sends with priority 64"),
                                         std::tuple(6, "LP 0 (Node), at the end, failed to report")));

TEST(ForeignOptions, ThatMakeNoSenseAreTheErrorOfTheRun) {
  for (const auto& [options, said] :
       {std::pair("end=x", "option end cannot be 'x'"), std::pair("end=1x", "option end cannot be '1x'"),
        std::pair("colour=red", "there is no option 'colour'"), std::pair("end", "option end cannot be ''"),
        std::pair("queue=stack", "option queue cannot be 'stack'"), std::pair("end=-1", "the end must be")}) {
    std::vector<state> finals;
    const Foreign simulation = model(options, finals);
    EXPECT_EQ(hm_pdes_run(simulation.get()), nullptr) << options;
    EXPECT_EQ(std::string(hm_pdes_error(simulation.get())).substr(0, std::string(said).size()), said);
  }
}

TEST(ForeignSimulation, RefusesWhatComesTooLateOrIsTooLarge) {
  std::vector<state> finals;
  const Foreign late = model("end=1", finals);
  hm_pdes_event_type(late.get(), "Late", 8);
  EXPECT_EQ(hm_pdes_run(late.get()), nullptr);
  EXPECT_STREQ(hm_pdes_error(late.get()), "event types come before LPs");
  const Foreign large = made("end=1");
  hm_pdes_event_type(large.get(), "Large", 1 << 20);
  EXPECT_STREQ(hm_pdes_error(large.get()), "event Large has 1048576 bytes; at most 32760 are allowed");
}

TEST(ForeignSimulation, IsStoppedByItsProgressFunction) {
  std::vector<state> finals;
  const Foreign simulation = model("end=1e9 interval=0.001", finals);
  hm_pdes_on_progress(
      simulation.get(), [](void* context, const hm_pdes_progress*) { hm_pdes_stop(static_cast<hm_pdes*>(context)); },
      simulation.get());
  const hm_pdes_result* result = hm_pdes_run(simulation.get());
  ASSERT_NE(result, nullptr);
  EXPECT_TRUE(result->stopped);
  EXPECT_LT(result->reached, 1e9);
}

// The events that a run took, with what they point at.
struct Taken {
  explicit Taken(const hm_pdes_result& result) : events(result.injected, result.injected + result.injected_count) {
    for (const auto& event : events) payloads.push_back(*static_cast<const hop*>(event.payload));
    for (std::size_t i = 0; i < events.size(); ++i) events[i].payload = &payloads[i];
  }
  std::vector<hm_pdes_injected> events;
  std::vector<hop> payloads;
};

TEST(ForeignOutside, WhatAThreadGivesComesAgainInAReplay) {
  std::vector<state> finals;
  const std::string options = "end=50 lookahead=0.25 threads=2";
  std::unique_ptr<Taken> taken;
  std::uint64_t digest = 0;
  {
    const Foreign simulation = model(options + " pace=500", finals);
    for (std::int64_t i = 0; i < 5; ++i) {
      const hop early{100 + i, 'e'};
      EXPECT_EQ(hm_pdes_inject(simulation.get(), i, 0, &early, 1), 1);
    }
    std::jthread outside([&] {
      for (hop given{200, 'o'}; hm_pdes_inject(simulation.get(), given.hops % 20, 0, &given, 0) == 1; ++given.hops)
        std::this_thread::sleep_for(std::chrono::microseconds(300));
    });
    const hm_pdes_result* result = hm_pdes_run(simulation.get());
    outside.join();
    ASSERT_NE(result, nullptr) << hm_pdes_error(simulation.get());
    EXPECT_GE(result->wall_s, 0.0999);
    taken = std::make_unique<Taken>(*result);
    digest = result->digest;
  }
  ASSERT_GE(taken->events.size(), 5u);
  EXPECT_EQ(taken->payloads.front().hops, 100);
  EXPECT_EQ(taken->events.front().priority, 1u);
  for (const bool replayed : {true, false}) {
    const Foreign simulation = model(options, finals);
    if (replayed) hm_pdes_replay(simulation.get(), taken->events.data(), taken->events.size());
    const hm_pdes_result* result = hm_pdes_run(simulation.get());
    ASSERT_NE(result, nullptr) << hm_pdes_error(simulation.get());
    EXPECT_EQ(result->injected_count, replayed ? taken->events.size() : 0);
    EXPECT_EQ(result->digest == digest, replayed);
  }
}

TEST(ForeignOutside, WhatMakesNoSenseIsToldToWhoGivesIt) {
  std::vector<state> finals;
  const Foreign simulation = model("end=1 lookahead=0.25 pace=1000", finals);
  const hop given{1, 'x'};
  const auto said = [&](std::int64_t to, std::uint32_t type, std::uint32_t priority) {
    EXPECT_EQ(hm_pdes_inject(simulation.get(), to, type, &given, priority), -1);
    return std::string(hm_pdes_inject_error());
  };
  EXPECT_EQ(said(20, 0, 0), "an event from outside is for LP 20, which does not exist");
  EXPECT_EQ(said(-1, 0, 0), "an event from outside is for LP -1, which does not exist");
  EXPECT_EQ(said(0, 1, 0), "an event from outside is of type 1: there is none");
  EXPECT_EQ(said(0, 0, 64), "an event from outside has a priority above 63");
  EXPECT_NE(hm_pdes_run(simulation.get()), nullptr) << hm_pdes_error(simulation.get());
  EXPECT_EQ(hm_pdes_inject(simulation.get(), 0, 0, &given, 0), 0);
  const Foreign fast = model("end=1", finals);
  EXPECT_EQ(hm_pdes_inject(fast.get(), 0, 0, &given, 0), -1);
  EXPECT_STREQ(hm_pdes_inject_error(), "a run takes events from outside only if it keeps a pace");
}

TEST(ForeignOutside, NobodyGivesToARunThatCannotBe) {
  std::vector<state> finals;
  const hop given{1, 'x'};
  const Foreign none = model("end=x pace=1", finals), late = model("end=1 pace=1", finals);
  EXPECT_EQ(hm_pdes_inject(none.get(), 0, 0, &given, 0), 0);
  hm_pdes_event_type(late.get(), "Late", 8);
  EXPECT_EQ(hm_pdes_inject(late.get(), 0, 0, &given, 0), 1);
  EXPECT_EQ(hm_pdes_run(late.get()), nullptr);
  EXPECT_EQ(hm_pdes_inject(late.get(), 0, 0, &given, 0), 0);
}

TEST(ForeignOutside, WhatIsReplayedMustBeOfTheModel) {
  const hop given{1, 'x'};
  for (const auto& [event, said] :
       {std::pair(hm_pdes_injected{1, 20, 0, 0, &given}, "an event from outside is for LP 20, which does not exist"),
        std::pair(hm_pdes_injected{1, 0, 1, 0, &given}, "an event from outside is of type 1: there is none"),
        std::pair(hm_pdes_injected{-1, 0, 0, 0, &given}, "what is replayed came from another model")}) {
    std::vector<state> finals;
    const Foreign simulation = model("end=1", finals);
    hm_pdes_replay(simulation.get(), &event, 1);
    EXPECT_EQ(hm_pdes_run(simulation.get()), nullptr);
    EXPECT_STREQ(hm_pdes_error(simulation.get()), said);
  }
}

}  // namespace

#include "pdes/simulation.h"

#include <gtest/gtest.h>

#include <thread>

namespace pdes {
namespace {

struct Note {
  std::uint32_t number;
};
struct Long {
  char text[300];
};
struct Unheard {};
using TestContext = Context<Note, Long, Unheard>;

// Writes down what it gets, in order.
struct Listener {
  using Context = TestContext;
  std::vector<std::uint32_t>* heard;
  void start(Context&) {}
  void on(Context&, const Note& note) { heard->push_back(note.number); }
};

struct Speaker {
  using Context = TestContext;
  std::function<void(Context&)> speech;
  void start(Context& context) { speech(context); }
  void on(Context&, const Note&) {}
};

Options until(Time end, Time lookahead = 0) {
  Options options;
  options.end = end;
  options.lookahead = lookahead;
  return options;
}

// Speakers 1..n after the listener, which is LP 0.
template <class... Speeches>
std::vector<std::uint32_t> heard(const Options& options, Speeches... speeches) {
  std::vector<std::uint32_t> heard;
  Simulation simulation(options);
  simulation.add<Listener>(1, [&](LpId) { return Listener{&heard}; });
  (simulation.add<Speaker>(1, [&](LpId) { return Speaker{speeches}; }), ...);
  simulation.run();
  return heard;
}

using Heard = std::vector<std::uint32_t>;

TEST(Order, ByTimeThenPriorityThenSourceThenSequence) {
  auto second = [](TestContext& context) {
    context.send(0, 1, Note{7});
    context.send(0, 1, Note{8});
    context.send(0, 1, Note{3}, 0);
    context.send(0, 1, Note{9}, 2);
    context.send(0, 0.5, Note{1});
  };
  auto first = [](TestContext& context) {
    context.send(0, 1, Note{6});
    context.send(0, 1, Note{10}, kLastPriority);
  };
  EXPECT_EQ(heard(until(2), first, second), (Heard{1, 6, 7, 8, 3, 9, 10}));
}

TEST(Order, EventsAtTheEndAreNotExecuted) {
  auto speech = [](TestContext& context) {
    context.send(0, 2, Note{2});
    context.send(0, 1.999, Note{1});
    context.send(0, 1e300, Note{3});
    context.send(0, kNever, Note{4});
  };
  EXPECT_EQ(heard(until(2), speech), (Heard{1}));
  EXPECT_EQ(heard(until(0), speech), Heard{});
}

// An event without delay for itself comes before what waits for the same time.
struct Echo {
  using Context = TestContext;
  std::vector<std::uint32_t>* heard;
  void start(Context& context) {
    context.send_self(1, Note{3});
    context.send_self(1, Note{10});
  }
  void on(Context& context, const Note& note) {
    heard->push_back(note.number);
    if (note.number > 0 && note.number < 10) context.send_self(0, Note{note.number - 1});
  }
};

TEST(Order, ZeroDelaysToItself) {
  std::vector<std::uint32_t> heard;
  Simulation simulation(until(5, 0.5));
  simulation.add<Echo>(1, [&](LpId) { return Echo{&heard}; });
  Result result = simulation.run();
  EXPECT_EQ(heard, (Heard{3, 10, 2, 1, 0}));
  EXPECT_EQ(result.total.events, 5u);
}

TEST(Simulation, PayloadsOfAnySizeArriveWhole) {
  struct Reader {
    using Context = TestContext;
    int* found;
    void start(Context&) {}
    void on(Context&, const Long& text) { *found += std::string(text.text) == std::string(299, 'x'); }
  };
  int found = 0;
  Simulation simulation(until(2));
  simulation.add<Reader>(1, [&](LpId) { return Reader{&found}; });
  simulation.add<Speaker>(1, [](LpId) {
    return Speaker{[](TestContext& context) {
      Long text{};
      std::fill(std::begin(text.text), std::end(text.text) - 1, 'x');
      context.send(0, 1, text);
    }};
  });
  Result result = simulation.run();
  EXPECT_EQ(found, 1);
  EXPECT_EQ(result.type_names, (std::vector<std::string>{"Note", "Long", "Unheard"}));
  EXPECT_EQ(result.events_by_type, (std::vector<std::uint64_t>{0, 1, 0}));
}

TEST(Simulation, CountsWhatHappens) {
  Simulation simulation(until(2));
  std::vector<std::uint32_t> heard;
  simulation.add<Listener>(1, [&](LpId) { return Listener{&heard}; });
  simulation.add<Speaker>(1, [](LpId) {
    return Speaker{[](TestContext& context) {
      context.send(0, 1, Note{});
      context.send_self(1, Note{});
      context.send(0, 3, Note{});
    }};
  });
  Result result = simulation.run();
  EXPECT_EQ(result.total.events, 2u);
  EXPECT_EQ(result.total.sent, 2u);
  EXPECT_EQ(result.total.dropped, 1u);
  EXPECT_EQ(result.total.crossed, 0u);
  EXPECT_EQ(result.reached, 2);
  EXPECT_FALSE(result.stopped);
}

struct Forever {
  using Context = TestContext;
  Simulation* simulation;
  std::uint64_t events = 0;
  void start(Context& context) { context.send_self(1, Note{0}); }
  void on(Context& context, const Note&) {
    if (++events == 20000 && context.id() == 0) simulation->stop();
    context.send_self(1, Note{0});
  }
  void report(Report& report) const { report.count("events", static_cast<std::int64_t>(events)); }
};

TEST(Simulation, StopEndsTheRunWithAPartialResult) {
  for (unsigned threads : {1, 2, 3}) {
    Options options = until(1e12, 1);
    options.threads = threads;
    Simulation simulation(options);
    simulation.add<Forever>(10, [&](LpId) { return Forever{&simulation}; });
    Result result = simulation.run();
    EXPECT_TRUE(result.stopped);
    EXPECT_GE(result.total.events, 20000u);
    EXPECT_LT(result.reached, 1e12);
    EXPECT_GE(result.reached, 1000);
    EXPECT_EQ(result.statistics.count_of("events"), static_cast<std::int64_t>(result.total.events));
  }
}

TEST(Simulation, ProgressIsToldWhileItRuns) {
  Options options = until(1e12, 1);
  options.progress_interval = 0.001;
  options.threads = 2;
  Simulation simulation(options);
  int calls = 0;
  Time last = 0;
  simulation.on_progress([&](const Progress& progress) {
    EXPECT_GE(progress.now, last);
    EXPECT_EQ(progress.thread_events.size(), 2u);
    last = progress.now;
    if (++calls == 5) simulation.stop();
  });
  simulation.add<Forever>(10, [&](LpId) { return Forever{&simulation}; });
  EXPECT_TRUE(simulation.run().stopped);
  EXPECT_GE(calls, 5);
}

TEST(Simulation, SeveralLiveInOneProcess) {
  auto run = [](std::uint64_t* digest) {
    Options options = until(1000, 1);
    options.threads = 2;
    Simulation simulation(options);
    simulation.add<Forever>(10, [&](LpId) { return Forever{&simulation}; });
    *digest = simulation.run().digest;
  };
  std::uint64_t digests[2] = {0, 1};
  std::thread other(run, &digests[0]);
  run(&digests[1]);
  other.join();
  EXPECT_EQ(digests[0], digests[1]);
}

TEST(Simulation, StreamsDependOnSeedLpAndNumberOnly) {
  struct Draws {
    using Context = TestContext;
    std::vector<std::uint64_t>* drawn;
    void start(Context& context) {
      Stream further = context.stream(1);
      (*drawn)[context.id() * 2] = context.random().bits();
      (*drawn)[context.id() * 2 + 1] = context.random(further).bits();
    }
    void on(Context&, const Note&) {}
  };
  std::vector<std::uint64_t> first(20), second(20);
  for (auto* drawn : {&first, &second}) {
    Options options = until(1, 1);
    options.threads = drawn == &first ? 1 : 3;
    Simulation simulation(options);
    simulation.add<Draws>(10, [drawn](LpId) { return Draws{drawn}; });
    simulation.run();
  }
  EXPECT_EQ(first, second);
  std::sort(first.begin(), first.end());
  EXPECT_EQ(std::unique(first.begin(), first.end()), first.end());
}

}  // namespace
}  // namespace pdes

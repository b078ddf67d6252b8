#include "pdes/simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "simulations.h"

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

// Does what a test is about.
struct Actor {
  using Context = TestContext;
  static constexpr bool kCheckpoints = false;
  std::function<void(Context&)> speak = [](Context&) {};
  std::function<void(Context&, Note)> hear = [](Context&, Note) {};
  std::function<void(const char*)> read = [](const char*) {};
  void start(Context& context) { speak(context); }
  void on(Context& context, const Note& note) { hear(context, note); }
  void on(Context&, const Long& text) { read(text.text); }
};

// Actor i is LP i.
Result run(const Options& options, const std::vector<Actor>& actors) {
  return test::run(options, static_cast<LpId>(actors.size()), [&](LpId id) { return actors[id]; });
}

using Heard = std::vector<std::uint32_t>;

Actor listener(Heard& heard) {
  return {.hear = [&](TestContext&, Note note) { heard.push_back(note.number); }};
}

TEST(Order, ByTimeThenPriorityThenSourceThenSequence) {
  Heard heard;
  const Actor second{.speak = [](TestContext& context) {
    context.send(0, 1, Note{7});
    context.send(0, 1, Note{8});
    context.send(0, 1, Note{3}, 0);
    context.send(0, 1, Note{9}, 2);
    context.send(0, 0.5, Note{1});
  }};
  const Actor first{.speak = [](TestContext& context) {
    context.send(0, 1, Note{6});
    context.send(0, 1, Note{10}, kLastPriority);
  }};
  run({.end = 2}, {listener(heard), first, second});
  EXPECT_EQ(heard, (Heard{1, 6, 7, 8, 3, 9, 10}));
}

TEST(Order, IsInTheDigest) {
  const auto digest = [](Priority first, Priority second) {
    const Actor actor{.speak = [=](TestContext& context) {
      context.send_self(1, Note{1}, first);
      context.send_self(1, Note{2}, second);
    }};
    return run({.end = 2}, {actor}).digest;
  };
  EXPECT_NE(digest(0, 1), digest(1, 0));
}

TEST(Order, EventsAtTheEndAreNotExecuted) {
  for (const auto& [end, expected] : {std::pair{2.0, Heard{1}}, {0.0, Heard{}}}) {
    Heard heard;
    const Actor speaker{.speak = [](TestContext& context) {
      for (const Time delay : {2.0, 1e300}) context.send(0, delay, Note{2});
      context.send(0, 1.999, Note{1});
    }};
    EXPECT_EQ(run({.end = end}, {listener(heard), speaker}).total.dropped, 3 - expected.size());
    EXPECT_EQ(heard, expected);
  }
}

// An event without delay for itself comes before what waits for the same time.
TEST(Order, ZeroDelaysToItself) {
  Heard heard;
  Actor echo = listener(heard);
  echo.speak = [](TestContext& context) {
    context.send_self(1, Note{3});
    context.send_self(1, Note{10});
  };
  echo.hear = [&](TestContext& context, Note note) {
    heard.push_back(note.number);
    if (note.number > 0 && note.number < 10) context.send_self(0, Note{note.number - 1});
  };
  run({.end = 5, .lookahead = 0.5}, {echo});
  EXPECT_EQ(heard, (Heard{3, 10, 2, 1, 0}));
}

template <class>
struct Of {
  struct Part {};
};

template <class Type>
std::string name_of_local(const std::vector<Type>&) {
  struct Local {};
  return type_name(typeid(Local));
}

TEST(Simulation, NamesOfTypesAreWithoutTheirScope) {
  EXPECT_EQ(type_name(typeid(int)), "int");
  EXPECT_EQ(type_name(typeid(Of<std::vector<int>>::Part)), "Part");
  EXPECT_EQ(name_of_local(std::vector<int>{}), "Local");
  EXPECT_EQ(type_name(typeid(Note)), "Note");
  EXPECT_EQ(type_name(typeid(Of<int>)), "Of<int>");
  EXPECT_EQ(type_name(typeid(std::pair<int, std::less<int>>)), "pair<int, std::less<int> >");
}

TEST(Simulation, PayloadsOfAnySizeArriveWholeAndAreCounted) {
  std::string found;
  const Actor reader{.read = [&](const char* text) { found = text; }};
  const Actor writer{.speak = [](TestContext& context) {
    Long text{};
    std::fill(std::begin(text.text), std::end(text.text) - 1, 'x');
    context.send(0, 1, text);
    context.send_self(1, Note{});
    context.send(0, 3, Note{});
  }};
  const Result result = run({.end = 2}, {reader, writer});
  EXPECT_EQ(found, std::string(299, 'x'));
  EXPECT_EQ(result.type_names, (std::vector<std::string>{"Note", "Long", "Unheard"}));
  EXPECT_EQ(result.events_by_type, (std::vector<std::uint64_t>{1, 1, 0}));
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
    if (++events == 20000) simulation->stop();
    context.send_self(1, Note{0});
  }
  void report(Report& report) const { report.count("events", static_cast<std::int64_t>(events)); }
};

TEST(Simulation, TellsProgressAndStopsWithAPartialResult) {
  for (unsigned threads : {1, 2, 3}) {
    Simulation simulation({.end = 1e12, .lookahead = 1, .threads = threads, .progress_interval = 0});
    simulation.add<Forever>(10, [&](LpId) { return Forever{&simulation}; });
    std::vector<Time> seen;
    simulation.on_progress([&](const Progress& progress) {
      EXPECT_EQ(progress.thread_events.size(), threads);
      seen.push_back(progress.now);
    });
    const Result result = simulation.run();
    EXPECT_GE(seen.size(), 5u);
    EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
    EXPECT_TRUE(result.stopped);
    EXPECT_GE(result.total.events, 20000u);
    EXPECT_LT(result.reached, 1e12);
    EXPECT_GE(result.reached, 1000);
    EXPECT_EQ(result.statistics.count_of("events"), static_cast<std::int64_t>(result.total.events));
  }
}

TEST(Simulation, StreamsDependOnSeedLpAndNumberOnly) {
  const auto drawn = [](unsigned threads) {
    std::vector<std::uint64_t> numbers(20);
    const Actor draws{.speak = [&](TestContext& context) {
      Stream further = context.stream(1);
      numbers[context.id() * 2] = context.random().bits();
      numbers[context.id() * 2 + 1] = context.random(further).bits();
    }};
    run({.end = 1, .lookahead = 1, .threads = threads}, std::vector(10, draws));
    return numbers;
  };
  const auto alone = drawn(1);
  EXPECT_EQ(drawn(3), alone);
  EXPECT_EQ(std::set(alone.begin(), alone.end()).size(), alone.size());
}

}  // namespace
}  // namespace pdes

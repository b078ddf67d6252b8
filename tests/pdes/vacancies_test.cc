// LPs that are made and end while the run goes on: the same on any threads and ranks, nothing is lost and nothing left.
#include "pdes/vacancies.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <thread>
#include <tuple>

#include "in_process_ranks.h"
#include "pdes/archive.h"
#include "simulations.h"

namespace pdes {
namespace {

using test::error_of;
using test::expect_same;

// ---- One id, step by step. ----------------------------------------------------------------------------------------

struct Step {
  std::uint32_t number;
};
struct Born {
  std::uint32_t number;
};
struct Word {
  std::uint32_t number;
};
struct Alarm {
  std::uint32_t number;
};
using TestContext = Context<Step, Makes<Born>, Word, Cancellable<Alarm>>;
constexpr LpId kGuest = 1;  // the id where nobody is at first

struct Diary {
  std::vector<std::string> lines;
  int there = 0, destroyed = 0;
  void note(Time at, const std::string& what) {
    char text[64];
    std::snprintf(text, sizeof text, "%g ", at);
    lines.push_back(text + what);
  }
};

struct Guest {
  using Context = TestContext;
  static constexpr bool kCheckpoints = false;
  using Deed = std::function<void(Guest&, Context&, std::uint32_t)>;
  Diary* diary;
  Deed deed;
  Timer timer{};
  std::vector<int> memory = std::vector<int>(100);  // that a leak would show
  Tally words{};
  struct Counted {
    Diary* diary;
    Counted(Diary* d) : diary(d) { ++diary->there; }
    Counted(const Counted& other) : Counted(other.diary) {}
    Counted& operator=(const Counted&) = delete;
    ~Counted() {
      --diary->there;
      ++diary->destroyed;
    }
  } counted{diary};

  void on(Context& context, const Born& born) {
    diary->note(context.now(), "born " + std::to_string(born.number));
    deed(*this, context, born.number);
  }
  void on(Context& context, const Word& word) {
    diary->note(context.now(), "word " + std::to_string(word.number));
    words.add(word.number);
    deed(*this, context, word.number);
  }
  void on(Context& context, const Alarm& alarm) { diary->note(context.now(), "alarm " + std::to_string(alarm.number)); }
  void report(Report& report) const {
    report.tally("words", words);
    report.sum("left_at", report.now());
  }
};

// Does something at times 1, 2, 3, ...
struct Host {
  using Context = TestContext;
  static constexpr bool kCheckpoints = false;
  std::vector<std::function<void(Context&)>> steps;
  void start(Context& context) { context.send_self(1, Step{0}); }
  void on(Context& context, const Step& step) {
    if (step.number < steps.size()) steps[step.number](context);
    context.send_self(1, Step{step.number + 1});
  }
};

struct Visit {
  Visit(std::vector<std::function<void(TestContext&)>> steps, Guest::Deed deed, Undelivered others = Undelivered::refused,
        Options how = {.end = 20}) {
    Simulation simulation(how);
    simulation.add<Host>(1, [&](LpId) { return Host{steps}; });
    EXPECT_EQ(simulation.add_vacant<Guest>(2, [&](LpId) { return Guest{&diary, deed}; }, others), kGuest);
    error = error_of([&] { result = simulation.run(); });
  }
  Diary diary;
  Result result;
  std::string error;
};

constexpr std::uint32_t kGo = 9;
void leaves_at_go(Guest&, TestContext& context, std::uint32_t number) {
  if (number == kGo) context.vacate();
}
auto sends(auto event, Time delay = 0.5) {
  return [=](TestContext& context) { context.send(kGuest, delay, event); };
}
void nothing(TestContext&) {}

TEST(Vacancies, AnLpIsMadeExecutesAndEndsAndTheIdIsVacantAgain) {
  const Visit visit({sends(Born{1}), sends(Word{2}), sends(Word{kGo}), nothing, sends(Born{3}), sends(Word{4})},
                    leaves_at_go);
  EXPECT_EQ(visit.error, "no error");
  EXPECT_EQ(visit.diary.lines,
            (std::vector<std::string>{"1.5 born 1", "2.5 word 2", "3.5 word 9", "5.5 born 3", "6.5 word 4"}));
  EXPECT_EQ(visit.result.total.made, 2u);
  EXPECT_EQ(visit.result.total.ended, 1u);
  EXPECT_EQ(visit.result.total.undelivered, 0u);
  EXPECT_EQ(visit.diary.there, 0);
  // What both report is there, and each at its own end.
  EXPECT_EQ(visit.result.statistics.at("words").count, 3);
  EXPECT_EQ(visit.result.statistics.sum_of("words"), 15);
  EXPECT_EQ(visit.result.statistics.sum_of("left_at"), 3.5 + 20);
}

TEST(Vacancies, WhoEndsWithItsFirstEventIsGoneAtOnce) {
  const Visit visit({sends(Born{kGo}), sends(Born{kGo})}, leaves_at_go);
  EXPECT_EQ(visit.error, "no error");
  EXPECT_EQ(visit.result.total.made, 2u);
  EXPECT_EQ(visit.result.total.ended, 2u);
}

TEST(Vacancies, TheHandlerReturnsBeforeTheLpEnds) {
  int destroyed = -1;
  const Visit visit({sends(Born{kGo})}, [&](Guest& guest, TestContext& context, std::uint32_t number) {
    context.vacate();
    context.vacate();
    destroyed = guest.diary->destroyed;
    context.send(0, 1, Step{100});
    guest.words.add(number);
  });
  EXPECT_EQ(visit.error, "no error");
  EXPECT_EQ(destroyed, 0);
  EXPECT_EQ(visit.result.statistics.sum_of("words"), kGo);
  EXPECT_EQ(visit.result.total.ended, 1u);
}

TEST(Vacancies, RandomNumbersGoOnFromOneLpToTheNext) {
  std::vector<std::uint64_t> drawn;
  const Visit visit({sends(Born{kGo}), sends(Born{kGo}), sends(Born{kGo})},
                    [&](Guest&, TestContext& context, std::uint32_t) {
                      drawn.push_back(context.random().bits());
                      context.vacate();
                    });
  Stream stream(1, kGuest, 0);
  Random random(stream, Generator::splitmix);
  EXPECT_EQ(drawn, (std::vector<std::uint64_t>{random.bits(), random.bits(), random.bits()}));
}

// Though they send nothing, and draw nothing else.
TEST(Vacancies, FurtherStreamsAreOfOneLpAlone) {
  std::vector<std::uint64_t> drawn;
  const Visit visit({sends(Born{1}), sends(Word{kGo}), sends(Born{kGo}), sends(Born{kGo})},
                    [&](Guest& guest, TestContext& context, std::uint32_t number) {
                      for (const std::uint32_t stream_number : {1u, 2u}) {
                        Stream stream = context.stream(stream_number);
                        drawn.push_back(context.random(stream).bits());
                      }
                      leaves_at_go(guest, context, number);
                    });
  ASSERT_EQ(drawn.size(), 8u);
  EXPECT_EQ(drawn[0], drawn[2]) << "in both of its events";
  EXPECT_EQ(drawn[1], drawn[3]);
  EXPECT_EQ(std::set(drawn.begin(), drawn.end()).size(), 6u);
}

// Of what an LP has sent to itself nothing reaches the next one, or nobody, be it a timer or not; what others have sent does.
TEST(Vacancies, WhatAnLpSendsToItselfEndsWithIt) {
  for (const Ties ties : {Ties::by_source, Ties::hashed}) {
    const Visit visit({sends(Born{1}), sends(Word{kGo}), sends(Word{5}, 8), nothing, sends(Born{2})},
                      [](Guest& guest, TestContext& context, std::uint32_t number) {
                        if (number == 1) {
                          context.set(guest.timer, 2, Alarm{1});  // vacant then
                          context.send_self(2.25, Word{6});
                          context.send_self(7, Word{7});  // then the next is there
                          context.send_self(7, Alarm{2});
                          context.send_self(2.25, Born{8});  // makes nobody
                          context.send_self(7, Born{9});
                        }
                        if (number == 1 || number == 2) context.set(guest.timer, number == 1 ? 6 : 1, Alarm{10 * number});
                        leaves_at_go(guest, context, number);
                      },
                      Undelivered::refused, {.end = 20, .ties = ties});
    EXPECT_EQ(visit.error, "no error");
    EXPECT_EQ(visit.diary.lines,
              (std::vector<std::string>{"1.5 born 1", "2.5 word 9", "5.5 born 2", "6.5 alarm 20", "11 word 5"}));
    EXPECT_EQ(visit.result.total.undelivered, 7u);
    EXPECT_EQ(visit.result.total.cancelled, 0u);
  }
}

// However much it sends: sequence numbers wrap, and then a sign does not tell what was sent before.
TEST(Vacancies, AnLpHearsItselfHoweverLongItLives) {
  const Visit visit({sends(Born{1})}, [](Guest& guest, TestContext& context, std::uint32_t number) {
    if (number > 4) return;
    reinterpret_cast<Lp*>(&guest)[-1].sequence += std::uint32_t{1} << 30;  // as if it had sent so many
    context.send_self(1, Word{number + 1});
  });
  EXPECT_EQ(visit.error, "no error");
  EXPECT_EQ(visit.diary.lines,
            (std::vector<std::string>{"1.5 born 1", "2.5 word 2", "3.5 word 3", "4.5 word 4", "5.5 word 5"}));
  EXPECT_EQ(visit.result.total.undelivered, 0u);
}

TEST(Vacancies, AnEventFromOutsideMakesAnLpToo) {
  const Injected born = TestContext::from_outside(kGuest, Born{1}, 0);
  Simulation simulation({.end = 20});
  Diary diary;
  simulation.add<Host>(1, [&](LpId) { return Host{{}}; });
  simulation.add_vacant<Guest>(2, [&](LpId) { return Guest{&diary, leaves_at_go}; });
  simulation.replay({{2.5, born.to, born.type, born.priority, born.payload}});
  simulation.run();
  EXPECT_EQ(diary.lines, (std::vector<std::string>{"2.5 born 1"}));
}

TEST(Vacancies, EventsForNobodyAreRefusedOrDroppedAndCounted) {
  EXPECT_EQ(Visit({sends(Word{1})}, leaves_at_go).error,
            "LP 1 (Guest), at time 1.5 on Word from LP 0, is vacant: nobody is there to execute Word");
  EXPECT_EQ(Visit({sends(Born{kGo}), sends(Alarm{1})}, leaves_at_go).error,
            "LP 1 (Guest), at time 2.5 on Alarm from LP 0, is vacant: nobody is there to execute Alarm");
  const Visit dropped({sends(Word{1}), sends(Born{kGo}), sends(Alarm{1}), sends(Born{2}), sends(Word{3})}, leaves_at_go,
                      Undelivered::dropped);
  EXPECT_EQ(dropped.error, "no error");
  EXPECT_EQ(dropped.diary.lines, (std::vector<std::string>{"2.5 born 9", "4.5 born 2", "5.5 word 3"}));
  EXPECT_EQ(dropped.result.total.undelivered, 2u);
}

TEST(Vacancies, WhereAnLpIsNoOtherIsMade) {
  EXPECT_EQ(Visit({sends(Born{1}), sends(Born{2})}, leaves_at_go, Undelivered::dropped).error,
            "LP 1 (Guest), at time 2.5 on Born from LP 0, is there already: Born makes an LP at a vacant id");
  EXPECT_EQ(Visit({[](TestContext& context) { context.send_self(1, Born{1}); }}, leaves_at_go).error,
            "LP 0 (Host), at time 2 on Born from LP 0, is there already: Born makes an LP at a vacant id");
}

TEST(Vacancies, WhoIsThereForTheWholeRunDoesNotEnd) {
  EXPECT_EQ(Visit({[](TestContext& context) { context.vacate(); }}, leaves_at_go).error,
            "LP 0 (Host), at time 1 on Step from LP 0, ends itself: it is there for the whole run, as it was not added by "
            "add_vacant");
}

TEST(Vacancies, AnLpHasNoHandlerForAllThatIsListed) {
  EXPECT_EQ(Visit({sends(Born{1}), sends(Step{1})}, leaves_at_go).error,
            "LP 1 (Guest), at time 2.5 on Step from LP 0, has no handler for Step");
}

// ---- What goes wrong inside of one. ------------------------------------------------------------------------------

struct Fragile {
  using Context = TestContext;
  int when;
  void on(Context& context, const Born& born) {
    if (when == 1) throw std::runtime_error("on");
    if (born.number == kGo) context.vacate();
  }
  void report(Report&) const {
    if (when == 2) throw std::runtime_error("report");
  }
};

TEST(Vacancies, ExceptionsEndTheRunWithTheirPlace) {
  for (int when = 0; when < 3; ++when) {
    Simulation simulation({.end = 20});
    simulation.add<Host>(1, [&](LpId) { return Host{{sends(Born{kGo})}}; });
    simulation.add_vacant<Fragile>(2, [&](LpId) {
      if (when == 0) throw std::runtime_error("made");
      return Fragile{when};
    });
    std::string said;
    try {
      simulation.run();
    } catch (const std::runtime_error& error) { said = error.what(); }
    EXPECT_EQ(said, (std::vector<std::string>{"made", "on", "report"}[static_cast<std::size_t>(when)]));
    EXPECT_EQ(simulation.partial().failed_at, "LP 1 (Fragile), at time 1.5 on Born from LP 0");
  }
}

TEST(Vacancies, ATimerOutsideOfItsLpIsRefused) {
  Timer global;
  EXPECT_EQ(
      Visit({sends(Born{1})}, [&](Guest&, TestContext& context, std::uint32_t) { context.set(global, 1, Alarm{1}); }).error,
      "LP 1 (Guest), at time 1.5 on Born from LP 0, sets a timer that is no member of it");
}

// ---- Vacancies. ---------------------------------------------------------------------------------------------------

TEST(Vacancies, AreTakenOnceAndAgainWhenGivenBack) {
  Vacancies vacancies(10, 3);
  EXPECT_EQ(vacancies.take(), 10u);
  EXPECT_EQ(vacancies.take(), 11u);
  vacancies.give_back(10);
  std::vector<std::byte> saved = to_bytes(vacancies);
  EXPECT_EQ(vacancies.take(), 10u);
  EXPECT_EQ(vacancies.take(), 12u);
  EXPECT_EQ(vacancies.take(), std::nullopt);
  Vacancies restored;
  EXPECT_EQ(restored.take(), std::nullopt);
  from_bytes(saved, restored);
  EXPECT_EQ(restored.take(), 10u);
  EXPECT_EQ(restored.take(), 12u);
  EXPECT_EQ(restored.take(), std::nullopt);
}

// ---- Many: customers who come, wait impatiently, talk to each other and leave. -----------------------------------

struct Next {};
struct Enters {
  LpId door;
};
struct Greets {};
struct Impatient {};
struct Leaves {};
struct Left {
  LpId who;
};
using CafeContext = Context<Next, Makes<Enters>, Greets, Cancellable<Impatient>, Leaves, Left>;
constexpr Time kWalk = 0.5, kClosing = 80;
constexpr LpId kDoors = 8;
std::atomic<int> g_seated{0},
    g_moved{0};  // customers who are there; who ended on another thread than that where they were made

struct Cafe {
  LpId seats = 40;       // of each door
  double pause = 0.2;    // between two who come
  double rush = kNever;  // how long each door in turn has ten times as many
};
constexpr Cafe kRush{.seats = 1200, .pause = 0.02, .rush = 10};

struct Door {
  using Context = CafeContext;
  const Cafe& cafe;
  Vacancies seats;
  std::uint64_t refused = 0;
  Door(const Cafe& of, LpId id) : cafe(of), seats(kDoors + id * of.seats, of.seats) {}
  Time pause(Context& context) const {
    const bool busy = cafe.rush < kNever && static_cast<LpId>(context.now() / cafe.rush) % kDoors == context.id();
    return context.random().exponential(busy ? cafe.pause / 10 : cafe.pause);
  }
  void start(Context& context) { context.send_self(pause(context), Next{}); }
  void on(Context& context, const Next&) {
    if (const auto seat = seats.take()) context.send(*seat, kWalk, Enters{context.id()});
    else ++refused;
    context.send_self(pause(context), Next{});
  }
  void on(Context&, const Left& left) { seats.give_back(left.who); }
  void report(Report& report) const { report.count("refused", static_cast<std::int64_t>(refused)); }
  template <class A>
  void serialize(A& archive) {
    archive(seats, refused);
  }
};

struct Customer {
  using Context = CafeContext;
  explicit Customer(const Cafe& of) : cafe(of), memories(3) { ++g_seated; }
  Customer(const Customer&) = delete;
  ~Customer() { --g_seated; }
  const Cafe& cafe;
  std::thread::id made_by = std::this_thread::get_id();
  LpId door = 0;
  std::uint32_t greeted = 0;
  Time came = 0;
  Timer patience;
  std::vector<double> memories;
  void on(Context& context, const Enters& enters) {
    door = enters.door;
    came = context.now();
    context.set(patience, 6, Impatient{});
    context.send_self(context.random().exponential(10), Leaves{});
    const auto whom = kDoors + static_cast<LpId>(context.random().integer(kDoors * cafe.seats));
    context.send(whom, kWalk, Greets{});
  }
  void on(Context& context, const Greets&) {
    memories.push_back(context.now());
    ++greeted;
    if (greeted % 2 != 0) return;
    Stream mood = context.stream(greeted);
    context.set(patience, 4 + 4 * context.random(mood).uniform(), Impatient{});
  }
  void on(Context& context, const Impatient&) { go(context); }
  void on(Context& context, const Leaves&) { go(context); }
  void go(Context& context) {
    memories.push_back(context.now() - came);
    context.send(door, kWalk, Left{context.id()});
    context.vacate();
    g_moved += made_by != std::this_thread::get_id();
  }
  void report(Report& report) const {
    report.count("greeted", greeted);
    Tally stay;
    if (memories.size() >
        3 + greeted) {  // has left: such names nobody else has, and their order must not be that of threads
      stay.add(memories.back());
      report.count("left_by_" + std::to_string(door), 1);
    }
    report.tally("stay", stay);
  }
  template <class A>
  void serialize(A& archive) {
    archive(door, greeted, came, patience, memories);
  }
};

Options opened(Options how) {
  how.end = kClosing;
  how.lookahead = kWalk;
  return how;
}
void fill(Simulation& simulation, const Cafe& of) {
  simulation.add<Door>(kDoors, [&of](LpId id) { return Door(of, id); });
  simulation.add_vacant<Customer>(kDoors * of.seats, [&of](LpId) { return Customer(of); }, Undelivered::dropped);
}
Result cafe(Options how, Ranks* ranks = nullptr, const std::function<void(Simulation&)>& prepare = {}, const Cafe& of = {}) {
  Simulation simulation(opened(how));
  fill(simulation, of);
  if (prepare) prepare(simulation);
  return simulation.run(ranks);
}

void expect_same_cafe(const Result& result, const Result& expected) {
  expect_same(result, expected);
  EXPECT_EQ(result.total.made, expected.total.made);
  EXPECT_EQ(result.total.ended, expected.total.ended);
  EXPECT_EQ(result.total.undelivered, expected.total.undelivered);
  EXPECT_EQ(result.total.cancelled, expected.total.cancelled);
  EXPECT_EQ(g_seated, 0);  // all objects are gone
}
std::vector<std::string> names_of(const Report& report) {
  std::vector<std::string> names;
  for (const auto& number : report.numbers()) names.push_back(number.name);
  return names;
}

TEST(Vacancies, ComesToTheSameOnAnyThreads) {
  const Result alone = cafe({});
  EXPECT_GT(alone.total.made, 2'000u);
  EXPECT_GT(alone.total.ended, alone.total.made - kDoors * Cafe().seats);
  EXPECT_GT(alone.total.undelivered, 500u);
  EXPECT_GT(alone.total.cancelled, 100u);
  for (const Options& how :
       {Options{.threads = 2}, Options{.threads = 3, .queue = Queue::heap},
        Options{.threads = 4, .allocator = Allocator::free_list, .partitioning = Partitioning::round_robin},
        Options{.threads = 2, .allocator = Allocator::malloc}, Options{.threads = 2, .blocks = Blocks::lines},
        Options{.threads = 3, .sync = Sync::neighbours, .partitioning = Partitioning::random}}) {
    const Result result = cafe(how);
    expect_same_cafe(result, alone);
    EXPECT_EQ(names_of(result.statistics), names_of(alone.statistics));
  }
}

TEST(Vacancies, ComesToTheSameWithHashedTies) {
  const Result alone = cafe({.ties = Ties::hashed});
  EXPECT_NE(alone.digest, cafe({}).digest);
  expect_same_cafe(cafe({.threads = 3, .ties = Ties::hashed}), alone);
}

TEST(Vacancies, ComesToTheSameOnAnyRanks) {
  const Result alone = cafe({});
  for (const unsigned ranks : {2u, 3u}) {
    std::vector<Result> results(ranks);
    test::on_ranks(ranks, [&](std::size_t rank, Ranks& others) {
      results[rank] = cafe({.threads = 2, .partitioning = Partitioning::random}, &others);
    });
    expect_same_cafe(results[0], alone);
  }
}

// Stops soon after that time.
Result cafe_until(Time at, Options how, const Cafe& of = {}) {
  how.progress_interval = 0;
  how.max_simultaneous = 100;
  const auto stops = [at](Simulation& simulation) {
    simulation.on_progress([&simulation, at](const Progress& progress) {
      if (progress.now > at) simulation.stop();
    });
  };
  Result part = cafe(how, nullptr, stops, of);
  EXPECT_TRUE(part.stopped);
  return part;
}

// Saved on one number of threads and ranks, resumed on others; then from a checkpoint of the resumed run.
TEST(Vacancies, GoesOnFromACheckpoint) {
  const Result whole = cafe({});
  const std::string path = testing::TempDir() + "vacancies_test." + std::to_string(getpid());
  const auto saved = [&](Options how, Time at) {
    how.checkpoint = path;
    ASSERT_LT(cafe_until(at, how).total.made, whole.total.made);
  };
  for (const unsigned threads : {1u, 3u}) {
    saved({.threads = threads}, 25);
    for (const unsigned resumed : {1u, 2u, 4u}) expect_same_cafe(cafe({.threads = resumed, .resume = path}), whole);
    saved({.threads = 2, .resume = path}, 50);
    expect_same_cafe(cafe({.threads = 3, .resume = path}), whole);
    std::vector<Result> results(2);
    test::on_ranks(2,
                   [&](std::size_t rank, Ranks& others) { results[rank] = cafe({.threads = 2, .resume = path}, &others); });
    expect_same_cafe(results[0], whole);
  }
  const Cafe closed;
  Simulation other({.end = kClosing, .lookahead = kWalk, .resume = path});
  other.add<Door>(kDoors, [&closed](LpId id) { return Door(closed, id); });
  EXPECT_EQ(error_of([&] { other.run(); }), path + " is of another simulation: its LPs are others");
  std::remove(path.c_str());
}

// ---- The same while they move: those who end on another thread than where they were made are among them. ----------

class Moving : public testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Threads, Moving, testing::Values(2, 3, 4));

TEST_P(Moving, ComesToTheSame) {
  const Result by_source = cafe({}, nullptr, {}, kRush), hashed = cafe({.ties = Ties::hashed}, nullptr, {}, kRush);
  EXPECT_GT(by_source.total.ended, 3 * kDoors * kRush.seats) << "ids are filled again and again";
  EXPECT_GT(by_source.total.undelivered, 5'000u);
  EXPECT_GT(by_source.total.cancelled, 100u);
  for (Options how : {Options{}, Options{.queue = Queue::heap, .ties = Ties::hashed},
                      Options{.allocator = Allocator::free_list}, Options{.blocks = Blocks::lines, .ties = Ties::hashed},
                      Options{.allocator = Allocator::malloc, .partitioning = Partitioning::random, .measure_delays = true},
                      Options{.balance = Balance::off, .gather = Gather::off},
                      Options{.balance_by = BalanceBy::events, .gather = Gather::off}}) {
    how.threads = GetParam();
    g_moved = 0;
    const Result result = cafe(how, nullptr, {}, kRush);
    const Result& alone = how.ties == Ties::hashed ? hashed : by_source;
    expect_same_cafe(result, alone);
    EXPECT_EQ(names_of(result.statistics), names_of(alone.statistics));
    if (how.balance == Balance::off) { EXPECT_EQ(g_moved, 0); }
    if (how.balance_by != BalanceBy::events)
      continue;  // moves depend on how long events took, and who runs them on the load
    EXPECT_GT(result.total.parted, 100u);
    EXPECT_GT(g_moved, 100);
  }
}

TEST_P(Moving, GoesOnFromACheckpoint) {
  const std::string path = testing::TempDir() + "vacancies_test.moving." + std::to_string(getpid());
  const Result whole = cafe({}, nullptr, {}, kRush);
  for (const Time at : {25., 45.}) {
    const Result part = cafe_until(at, {.threads = GetParam(), .checkpoint = path}, kRush);
    EXPECT_GT(part.total.parted, 0u);
    ASSERT_LT(part.total.made, whole.total.made);
    for (const unsigned threads : {1u, 2u, 4u}) {
      const Result rest = cafe({.threads = threads, .resume = path}, nullptr, {}, kRush);
      expect_same_cafe(rest, whole);
      EXPECT_EQ(rest.total.parted > 0, threads > 1);
    }
  }
  std::remove(path.c_str());
}

TEST(MovingOnRanks, ComesToTheSame) {
  const Result alone = cafe({}, nullptr, {}, kRush);
  for (auto [ranks, threads, balance] : {std::tuple{2u, 2u, Balance::threads},
                                         {3u, 2u, Balance::threads},
                                         {2u, 1u, Balance::ranks},
                                         {2u, 2u, Balance::ranks},
                                         {3u, 1u, Balance::ranks}}) {
    std::vector<Result> results(ranks);
    test::on_ranks(ranks, [&, how = Options{.threads = threads, .balance = balance}](std::size_t rank, Ranks& others) {
      results[rank] = cafe(how, &others, {}, kRush);
    });
    expect_same_cafe(results[0], alone);
    EXPECT_EQ(names_of(results[0].statistics), names_of(alone.statistics));
    EXPECT_GT(results[0].total.parted, 100u);
    EXPECT_EQ(results[0].total.emigrated > 100, balance == Balance::ranks);
  }
}

// What comes from outside, for whoever is there wherever that is, or for nobody.
TEST_P(Moving, BesideRealTime) {
  Simulation simulation(opened({.threads = GetParam(), .pace = 1000}));
  fill(simulation, kRush);
  std::atomic<bool> gives{false};
  std::jthread outside([&] {
    for (LpId to = 0; simulation.inject<CafeContext>(kDoors + to, Greets{}); to = (to + 7) % (kDoors * kRush.seats)) {
      gives = true;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  });
  while (!gives) std::this_thread::yield();  // or a busy machine might let it come when all is over
  const Result result = simulation.run();
  outside.join();
  EXPECT_GT(result.total.parted, 0u);
  EXPECT_FALSE(result.injected.empty());
  const auto replays = [&](Simulation& other) { other.replay(result.injected); };
  const Result again = cafe({}, nullptr, replays, kRush);
  EXPECT_EQ(again.digest, result.digest);
  EXPECT_EQ(again.total.made, result.total.made);
  EXPECT_EQ(again.total.undelivered, result.total.undelivered);
}

// ---- Memory: of a crowd nothing is left when it has gone. ---------------------------------------------------------

struct Come {};
struct Go {};
using CrowdContext = Context<Makes<Come>, Go, Next>;
constexpr LpId kCrowd = 5000;

struct Crowd {
  using Context = CrowdContext;
  std::array<char, 2000> state{};
  void on(Context& context, const Come&) { context.send_self(2, Go{}); }
  void on(Context& context, const Go&) { context.vacate(); }
};
struct Clock {
  using Context = CrowdContext;
  std::uint32_t ticks = 0;
  void start(Context& context) { context.send_self(0, Next{}); }
  void on(Context& context, const Next&) {
    if (ticks++ % 1000 == 0)
      for (LpId id = 1; id <= kCrowd; ++id) context.send(id, 1 + 1e-5 * id, Come{});
    context.send_self(0.01, Next{});
  }
};

TEST(Vacancies, GiveTheirMemoryBack) {
  constexpr std::size_t kState = sizeof(Crowd) * kCrowd;
  for (const Allocator allocator : {Allocator::hmalloc, Allocator::malloc, Allocator::free_list}) {
    Simulation simulation({.end = 50, .allocator = allocator, .progress_interval = 0, .max_simultaneous = 100});
    simulation.add<Clock>(1, [](LpId) { return Clock(); });
    simulation.add_vacant<Crowd>(kCrowd, [](LpId) { return Crowd(); });
    std::size_t most = 0, least = kState;
    int looks = 0;
    simulation.on_progress([&](const Progress& progress) {
      const Time phase = std::fmod(progress.now, 10);
      if (phase > 1.5 && phase < 2.5) most = std::max(most, progress.bytes);
      if (phase > 4) least = std::min(least, progress.bytes), ++looks;
    });
    const Result result = simulation.run();
    EXPECT_EQ(result.total.made, 5u * kCrowd);
    EXPECT_EQ(result.total.ended, 5u * kCrowd);
    EXPECT_GT(most, kState);
    EXPECT_GT(looks, 10);
    EXPECT_LT(least, kState / 10);
    EXPECT_LT(result.peak_bytes, kState + kState / 4) << "five crowds take as much as one";
  }
}

TEST(Vacancies, CountForTheLimitOfMemory) {
  Simulation simulation({.end = 50, .max_memory = sizeof(Crowd) * kCrowd / 2, .max_simultaneous = 100});
  simulation.add<Clock>(1, [](LpId) { return Clock(); });
  simulation.add_vacant<Crowd>(kCrowd, [](LpId) { return Crowd(); });
  EXPECT_NE(error_of([&] { simulation.run(); }).find("memory limit reached"), std::string::npos);
}

}  // namespace
}  // namespace pdes

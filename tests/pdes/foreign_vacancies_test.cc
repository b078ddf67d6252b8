// LPs that come and go, through the C interface, beside the same in C++.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "pdes/foreign.h"
#include "simulations.h"

namespace {

// Guests come by a door each, talk to each other, lose their patience and leave; some do not even sit down.
constexpr std::int64_t kDoors = 4, kSeats = 10;
constexpr double kWalk = 0.5;

struct Next {};
struct Enters {
  std::int64_t door;
};
struct Impatient {};
struct Word {};
struct Left {
  std::int64_t who;
};
using Context = pdes::Context<Next, pdes::Makes<Enters>, pdes::Cancellable<Impatient>, Word, Left>;

struct CxxDoor {
  using Context = ::Context;
  static constexpr bool kCheckpoints = false;
  pdes::Vacancies seats;
  std::int64_t refused = 0;
  explicit CxxDoor(pdes::LpId id) : seats(static_cast<pdes::LpId>(kDoors + id * kSeats), kSeats) {}
  void start(Context& context) { context.send_self(context.random().exponential(0.3), Next{}); }
  void on(Context& context, const Next&) {
    if (const auto seat = seats.take()) context.send(*seat, kWalk, Enters{context.id()});
    else ++refused;
    context.send_self(context.random().exponential(0.3), Next{});
  }
  void on(Context&, const Left& left) { seats.give_back(static_cast<pdes::LpId>(left.who)); }
  void report(pdes::Report& report) const { report.count("refused", refused); }
};

struct CxxGuest {
  using Context = ::Context;
  static constexpr bool kCheckpoints = false;
  pdes::Timer patience;
  pdes::Stream stream;
  pdes::Histogram words;
  std::int64_t door = 0, heard = 0;
  void on(Context& context, const Enters& enters) {
    door = enters.door;
    stream = context.stream(1);
    if (context.random().chance(0.1)) return leave(context);
    context.set(patience, context.random().exponential(3), Impatient{});
    talk(context);
  }
  void on(Context& context, const Next&) { talk(context); }
  void talk(Context& context) {
    const auto seat = static_cast<pdes::LpId>(kDoors + context.random().integer(kDoors * kSeats));
    context.send(seat, kWalk, Word{});
    context.send_self(context.random(stream).exponential(1), Next{});
  }
  void on(Context& context, const Word&) {
    words.add(context.now());
    if (++heard % 2 == 0) context.set(patience, 2, Impatient{});
  }
  void on(Context& context, const Impatient&) { leave(context); }
  void leave(Context& context) {
    context.send_self(kWalk / 2, Enters{door});  // makes nobody
    context.send(static_cast<pdes::LpId>(door), kWalk, Left{context.id()});
    context.vacate();
  }
  void report(pdes::Report& report) const {
    report.count("guests", 1);
    report.histogram("words", words);
    report.sum("left_at", report.now());
  }
};

pdes::Result in_cxx(pdes::Options options) {
  pdes::Simulation simulation(options);
  simulation.add<CxxDoor>(kDoors, [](pdes::LpId id) { return CxxDoor(id); });
  simulation.add_vacant<CxxGuest>(kDoors * kSeats, [](pdes::LpId) { return CxxGuest(); }, pdes::Undelivered::dropped);
  return simulation.run();
}

// ---- The same through the C interface. ---------------------------------------------------------------------------

enum Type : std::uint32_t { kNext, kEnters, kImpatient, kWord, kLeft };
enum Fault : std::int64_t { kNone, kDoorVacates, kTwice, kWordForNobody };

struct Door {
  hm_pdes_vacancies seats;
  std::int64_t refused, fault;
};
struct Guest {
  hm_pdes_timer patience;
  hm_pdes_histogram words;
  std::int64_t door, table, heard;  // table: one of each seat
};

int opens(hm_pdes_lp* lp, void* state, const void*) {
  const hm_pdes_vacancies* seats = &static_cast<Door*>(state)->seats;
  if (hm_pdes_vacancies_set(seats, -1, 1) != 0 || hm_pdes_vacancies_give_back(seats, -1) != 0) return 0;
  if (hm_pdes_vacancies_set(seats, kDoors + lp->id * kSeats, kSeats) == 0) return 0;
  hm_pdes_send(lp, lp->id, hm_pdes_exponential(lp, 0, 0.3), kNext, nullptr, 0);
  return 1;
}
int lets_in(hm_pdes_lp* lp, void* state, const void*) {
  Door& door = *static_cast<Door*>(state);
  const Enters enters{lp->id};
  if (door.fault == kDoorVacates) hm_pdes_vacate(lp);
  if (door.fault == kWordForNobody) hm_pdes_send(lp, kDoors, kWalk, kWord, nullptr, 0);
  if (door.fault == kTwice) hm_pdes_send(lp, kDoors + lp->id * kSeats, kWalk, kEnters, &enters, 0);
  const std::int64_t seat = hm_pdes_vacancies_take(&door.seats);
  if (seat >= 0) hm_pdes_send(lp, seat, kWalk, kEnters, &enters, 0);
  else ++door.refused;
  hm_pdes_send(lp, lp->id, hm_pdes_exponential(lp, 0, 0.3), kNext, nullptr, 0);
  return 1;
}
int sees_off(hm_pdes_lp*, void* state, const void* event) {
  return hm_pdes_vacancies_give_back(&static_cast<Door*>(state)->seats, static_cast<const Left*>(event)->who);
}
int counts_refused(hm_pdes_report* report, void* state) {
  hm_pdes_report_count(report, "refused", static_cast<const Door*>(state)->refused);
  return 1;
}

int talks(hm_pdes_lp* lp, void*, const void*) {
  hm_pdes_send(lp, kDoors + hm_pdes_integer(lp, 0, kDoors * kSeats), kWalk, kWord, nullptr, 0);
  hm_pdes_send(lp, lp->id, hm_pdes_exponential(lp, 1, 1), kNext, nullptr, 0);
  return 1;
}
int leaves(hm_pdes_lp* lp, void* state, const void*) {
  const Enters again{static_cast<const Guest*>(state)->door};
  const Left left{lp->id};
  hm_pdes_send(lp, lp->id, kWalk / 2, kEnters, &again, 0);
  hm_pdes_send(lp, again.door, kWalk, kLeft, &left, 0);
  hm_pdes_vacate(lp);
  return 1;
}
int enters(hm_pdes_lp* lp, void* state, const void* event) {
  Guest& guest = *static_cast<Guest*>(state);
  if (guest.door != 0 || guest.table != lp->id || guest.patience.set != 0) return 0;  // as of somebody who was there before
  guest.door = static_cast<const Enters*>(event)->door;
  if (hm_pdes_uniform(lp, 0) < 0.1) return leaves(lp, state, event);
  hm_pdes_setting none{};
  hm_pdes_set_timer(lp, &guest.patience, hm_pdes_exponential(lp, 0, 3), kImpatient, &none, 0);
  return talks(lp, state, event);
}
int hears(hm_pdes_lp* lp, void* state, const void*) {
  Guest& guest = *static_cast<Guest*>(state);
  hm_pdes_setting none{};
  if (++guest.heard % 2 == 0) hm_pdes_set_timer(lp, &guest.patience, 2, kImpatient, &none, 0);
  return hm_pdes_histogram_add(&guest.words, lp->now);
}
int says_goodbye(hm_pdes_report* report, void* state) {
  const Guest& guest = *static_cast<const Guest*>(state);
  hm_pdes_report_count(report, "guests", hm_pdes_report_id(report) == guest.table);
  hm_pdes_report_histogram(report, "words", &guest.words);
  hm_pdes_report_sum(report, "left_at", hm_pdes_report_now(report));
  return 1;
}

const hm_pdes_handler kDoorHandlers[] = {lets_in, nullptr, nullptr, nullptr, sees_off};
const hm_pdes_handler kGuestHandlers[] = {talks, enters, leaves, hears, nullptr};

struct Cafe {
  explicit Cafe(const std::string& options, Fault fault = kNone, bool drops = true)
      : simulation(hm_pdes_new(options.c_str()), &hm_pdes_free) {
    hm_pdes_event_type(simulation.get(), "Next", 0);
    hm_pdes_making_type(simulation.get(), "Enters", sizeof(Enters));
    hm_pdes_cancellable_type(simulation.get(), "Impatient", sizeof(hm_pdes_setting));
    hm_pdes_event_type(simulation.get(), "Word", 0);
    hm_pdes_event_type(simulation.get(), "Left", sizeof(Left));
    const Door door{.seats = {0, offsetof(Door, seats)}, .refused = 0, .fault = fault};
    hm_pdes_class described{};
    described.name = "Door";
    described.size = sizeof door;
    described.vacancies = 1;
    described.start = opens;
    described.handlers = kDoorHandlers;
    described.report = counts_refused;
    described.states = &door;
    described.shared = 1;
    hm_pdes_add(simulation.get(), &described, kDoors);
    std::vector<Guest> guests;
    for (std::int64_t i = 0; i < kDoors * kSeats; ++i) guests.push_back({{}, {0, offsetof(Guest, words)}, 0, kDoors + i, 0});
    described = {};
    described.name = "Guest";
    described.size = sizeof(Guest);
    described.streams = described.histograms = 1;
    described.handlers = kGuestHandlers;
    described.report = says_goodbye;
    described.states = guests.data();
    described.finals = finals.data();
    hm_pdes_add_vacant(simulation.get(), &described, kDoors * kSeats, drops, there.data());
  }
  const hm_pdes_result* run() { return hm_pdes_run(simulation.get()); }
  std::string error() {
    EXPECT_EQ(run(), nullptr);
    return hm_pdes_error(simulation.get());
  }

  std::vector<Guest> finals = std::vector<Guest>(kDoors * kSeats);
  std::vector<unsigned char> there = std::vector<unsigned char>(kDoors * kSeats);
  std::unique_ptr<hm_pdes, decltype(&hm_pdes_free)> simulation;
};

void expect_same(const hm_pdes_result* result, const pdes::Result& expected) {
  EXPECT_EQ(result->digest, expected.digest);
  EXPECT_EQ(result->made, expected.total.made);
  EXPECT_EQ(result->ended, expected.total.ended);
  EXPECT_EQ(result->undelivered, expected.total.undelivered);
  EXPECT_EQ(result->cancelled, expected.total.cancelled);
  EXPECT_EQ(result->statistic_count, 4u);
  for (std::uint64_t i = 0; i < result->statistic_count; ++i) {
    const hm_pdes_statistic& of = result->statistics[i];
    EXPECT_EQ(of.count, expected.statistics.at(of.name).count) << of.name;
    EXPECT_EQ(of.sum, expected.statistics.at(of.name).sum.value()) << of.name;
  }
}

class ForeignCafe : public testing::TestWithParam<const char*> {};

TEST_P(ForeignCafe, IsThatOfCxx) {
  const pdes::Result expected = in_cxx({.end = 200, .lookahead = kWalk});
  ASSERT_GT(expected.total.ended, 100u);
  ASSERT_GT(expected.total.cancelled, 100u);
  ASSERT_GT(expected.total.undelivered, expected.total.ended) << "what guests sent to themselves, and to nobody";
  ASSERT_EQ(static_cast<std::uint64_t>(expected.statistics.count_of("guests")), expected.total.made) << "each reports once";
  Cafe cafe("end=200 lookahead=0.5 " + std::string(GetParam()));
  const hm_pdes_result* result = cafe.run();
  ASSERT_NE(result, nullptr) << hm_pdes_error(cafe.simulation.get());
  expect_same(result, expected);
  std::uint64_t present = 0;
  for (std::size_t i = 0; i < cafe.there.size(); ++i) {
    present += cafe.there[i];
    EXPECT_EQ(cafe.finals[i].table, cafe.there[i] != 0 ? static_cast<std::int64_t>(kDoors + i) : 0);
  }
  EXPECT_EQ(present, result->made - result->ended);
  EXPECT_LT(present, cafe.there.size());
}
INSTANTIATE_TEST_SUITE_P(Options, ForeignCafe, testing::Values("", "threads=2", "threads=3 partition=random"));

TEST(ForeignVacancies, WhatNobodyGetsIsTold) {
  for (const char* how : {"", " threads=2"}) {
    struct Told {
      std::atomic<std::uint64_t> events{0}, by_own_id{0};
    } told;
    Cafe cafe(std::string("end=200 lookahead=0.5") + how);
    hm_pdes_on_undelivered(
        cafe.simulation.get(),
        [](void* context, std::uint32_t type, const void* event) {
          auto& into = *static_cast<Told*>(context);
          ++into.events;
          if (type == kEnters && static_cast<const Enters*>(event)->door < kDoors) ++into.by_own_id;
        },
        &told);
    const hm_pdes_result* result = cafe.run();
    ASSERT_NE(result, nullptr);
    EXPECT_EQ(told.events, result->undelivered);
    EXPECT_LE(told.by_own_id, result->ended);
    EXPECT_GE(told.by_own_id, result->ended - kDoors * kSeats);
  }
}

TEST(ForeignVacancies, ACheckpointHasWhoIsThereAndWhichIdsAreVacant) {
  const std::string file = testing::TempDir() + "cafe" + std::to_string(getpid()), options = "end=2000 lookahead=0.5 ";
  Cafe stopped(options + "threads=2 interval=1e-9 checkpoint=" + file);
  hm_pdes_on_progress(
      stopped.simulation.get(), [](void* context, const hm_pdes_progress*) { hm_pdes_stop(static_cast<hm_pdes*>(context)); },
      stopped.simulation.get());
  ASSERT_NE(stopped.run(), nullptr);
  Cafe resumed(options + "threads=3 resume=" + file);
  const hm_pdes_result* result = resumed.run();
  ASSERT_NE(result, nullptr) << hm_pdes_error(resumed.simulation.get());
  EXPECT_GT(result->events_before, 0u);
  EXPECT_LT(result->events_before, result->events);
  expect_same(result, in_cxx({.end = 2000, .lookahead = kWalk}));
  std::remove(file.c_str());
}

TEST(ForeignVacancies, WhatCannotBeIsTheErrorOfTheRun) {
  const std::string options = "end=20 lookahead=0.5";
  EXPECT_TRUE(Cafe(options, kDoorVacates)
                  .error()
                  .ends_with(" ends itself: it is there for the whole run, as it was not added by add_vacant"));
  EXPECT_TRUE(Cafe(options, kTwice).error().ends_with(" is there already: Enters makes an LP at a vacant id"));
  EXPECT_TRUE(Cafe(options, kWordForNobody, false).error().ends_with(" is vacant: nobody is there to execute Word"));

  Cafe idle(options);
  hm_pdes_class described{};
  described.name = "Idle";
  described.handlers = kDoorHandlers;
  hm_pdes_add_vacant(idle.simulation.get(), &described, 1, 0, nullptr);
  EXPECT_EQ(idle.error(), "nothing makes LPs of class Idle: it has no handler of an event that makes LPs");
}

TEST(ForeignVacancies, AreOfLpsThatHaveThem) {
  hm_pdes_class described{};
  const Door door{.seats = {1, offsetof(Door, seats)}, .refused = 0, .fault = kNone};
  described.name = "Door";
  described.size = sizeof door;
  described.vacancies = 1;
  described.start = opens;
  const hm_pdes_handler none[] = {nullptr};
  described.handlers = none;
  described.states = &door;
  const std::unique_ptr<hm_pdes, decltype(&hm_pdes_free)> simulation(hm_pdes_new("end=1"), &hm_pdes_free);
  hm_pdes_event_type(simulation.get(), "Next", 0);
  hm_pdes_add(simulation.get(), &described, 1);
  EXPECT_EQ(hm_pdes_run(simulation.get()), nullptr);
  EXPECT_STREQ(hm_pdes_error(simulation.get()), "LP 0 (Door), at its start, failed");
}

}  // namespace

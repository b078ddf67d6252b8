// Windows that the first thread executes for all change no result, and whatever may happen in a window may happen in these.
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>

#include "in_process_ranks.h"
#include "simulations.h"
#include "town.h"

namespace pdes {
namespace {

using test::basic;
using test::error_of;
using test::expect_same;
using test::run_town;

Options gathering(unsigned threads) {
  Options how = basic(threads);
  how.gather = Gather::always;
  return how;
}

class Gathering : public testing::TestWithParam<unsigned> {
 protected:
  static const Result& alone() {
    static const Result result = run_town(basic(1));
    return result;
  }
};
INSTANTIATE_TEST_SUITE_P(Threads, Gathering, testing::Values(2, 3, 8));

TEST_P(Gathering, ChangesNoResult) {
  for (const Queue queue : {Queue::wheel, Queue::heap}) {
    for (const Allocator allocator : {Allocator::hmalloc, Allocator::malloc, Allocator::free_list}) {
      Options how = gathering(GetParam());
      how.queue = queue;
      how.allocator = allocator;
      const Result result = run_town(how);
      expect_same(result, alone());
      EXPECT_EQ(result.gathered, result.total.windows);
    }
  }
  Options off = basic(GetParam());
  off.gather = Gather::off;
  EXPECT_EQ(run_town(off).gathered, 0u);
}

TEST_P(Gathering, LoadMovesAsItDoesOtherwise) {
  Options how = gathering(GetParam());
  how.end = 400;
  Options on_one = how;
  on_one.threads = 1;
  Options apart = how;
  apart.gather = Gather::off;
  const Result result = run_town(how), other = run_town(apart);
  EXPECT_GT(result.total.parted, 0u);
  EXPECT_EQ(result.total.parted, other.total.parted);
  for (unsigned i = 0; i < GetParam(); ++i) EXPECT_EQ(result.threads[i].events, other.threads[i].events);
  expect_same(result, run_town(on_one));
}

TEST_P(Gathering, AnLpMayEndTheRun) {
  const test::Town town{.ends = 20};
  const Result result = run_town(gathering(GetParam()), town);
  EXPECT_TRUE(result.ended_by_model);
  expect_same(result, run_town(basic(1), town));
}

TEST_P(Gathering, AnLpMayFail) {
  const test::Town town{.fails = 20};
  EXPECT_NE(error_of([&] { run_town(gathering(GetParam()), town); }).find("it had to be"), std::string::npos);
}

TEST_P(Gathering, ARunIsStoppedSavedAndResumed) {
  const std::string file = testing::TempDir() + "gathering_test." + std::to_string(getpid());
  Options how = gathering(GetParam());
  how.checkpoint = file;
  const Result stopped = run_town(how, {}, 20000);
  EXPECT_TRUE(stopped.stopped);
  EXPECT_EQ(stopped.checkpoints, 1u);
  EXPECT_LT(stopped.total.events, alone().total.events);
  how.checkpoint.clear();
  how.resume = file;
  const Result resumed = run_town(how);
  EXPECT_EQ(resumed.events_before, stopped.total.events);
  EXPECT_EQ(resumed.digest, alone().digest);
  std::filesystem::remove(file);
}

TEST_P(Gathering, ARunIsSavedWhileItGoesOn) {
  const std::string file = testing::TempDir() + "gathering_test." + std::to_string(getpid());
  Options how = gathering(GetParam());
  how.checkpoint = file;
  how.checkpoint_every = 1e-9;
  const Result saved = run_town(how);
  expect_same(saved, alone());
  EXPECT_GT(saved.checkpoints, 3u);
  std::filesystem::remove(file);
}

// This thread, and those that it starts, on one CPU.
class OneCpu {
 public:
  OneCpu() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (std::size_t cpu = 0; CPU_COUNT(&one) == 0; ++cpu)
      if (CPU_ISSET(cpu, &before_)) CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  ~OneCpu() { sched_setaffinity(0, sizeof before_, &before_); }
  OneCpu(const OneCpu&) = delete;
  OneCpu& operator=(const OneCpu&) = delete;

 private:
  cpu_set_t before_;
};

// More threads than CPUs, and windows of a few events: waiting is most of what they do.
TEST(GatheringByItself, IsFoundToBeFaster) {
  const OneCpu only;
  Options how = basic(4);
  how.end = 4000;
  how.lookahead = 0.01;
  const test::Town town{.lps = 8, .hot = 1};
  Options on_one = how;
  on_one.threads = 1;
  const Result result = run_town(how, town);
  expect_same(result, run_town(on_one, town));
  EXPECT_GT(result.gathered, 0u);
}

struct Nap {};
// One LP is idle, the others sleep in each window.
struct Sleeper {
  using Context = pdes::Context<Nap>;
  void start(Context& context) { context.send_self(0.5, Nap{}); }
  void on(Context& context, const Nap&) {
    if (context.id() > 0) usleep(2000);
    context.send_self(1, Nap{});
  }
};

// Apart they sleep at the same time, gathered one after the other: what is tried must not be tried often.
TEST(GatheringByItself, IsGivenUpWhereHandlersTakeLong) {
  const OneCpu only;
  Simulation simulation({.end = 200, .lookahead = 1, .threads = 8});
  simulation.add<Sleeper>(8, [](LpId) { return Sleeper{}; });
  EXPECT_LT(simulation.run().gathered, 20u);
}

// The first thread's LP has nothing to do, but it is that thread which looks whether the run is to be saved, and how far it is.
struct Clock {
  using Context = pdes::Context<Nap>;
  void start(Context& context) {
    if (context.id() > 0) context.send_self(0.5, Nap{});
  }
  void on(Context& context, const Nap&) { context.send_self(1, Nap{}); }
};

TEST(GatheringByItself, IsSavedAndWatchedWhereTheFirstThreadHasNothingToDo) {
  const std::string file = testing::TempDir() + "gathering_test." + std::to_string(getpid());
  Simulation simulation({.end = 400,
                         .lookahead = 1,
                         .threads = 2,
                         .gather = Gather::always,
                         .progress_interval = 1e-9,
                         .checkpoint = file,
                         .checkpoint_every = 1e-9});
  simulation.add<Clock>(2, [](LpId) { return Clock{}; });
  int told = 0;
  simulation.on_progress([&](const Progress&) { ++told; });
  EXPECT_GT(simulation.run().checkpoints, 50u);
  EXPECT_GT(told, 10);
  std::filesystem::remove(file);
}

TEST(GatheringByItself, IsNotDoneWithRanksOrAPace) {
  Options paced = gathering(2);
  paced.pace = 1e9;
  EXPECT_EQ(run_town(paced).gathered, 0u);
  std::array<Result, 2> results;
  test::on_ranks(2, [&](std::size_t rank, Ranks& mine) { results[rank] = run_town(gathering(2), {}, 0, &mine); });
  EXPECT_EQ(results[0].gathered + results[1].gathered, 0u);
}

}  // namespace
}  // namespace pdes

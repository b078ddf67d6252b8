// Memory that runs out while LPs move: the run ends, and every LP is destroyed, those on their way, too.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <utility>

#include "in_process_ranks.h"
#include "pdes/pdes.h"

namespace {

constexpr std::size_t kLarge = 512;  // bytes
thread_local int t_until_it_fails = 0;
std::atomic<int> g_failed{0};
std::atomic<long> g_blocks{0};

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size) {
  const bool fails = size >= kLarge && t_until_it_fails > 0 && --t_until_it_fails == 0;
  g_failed += fails;
  void* block = fails ? nullptr : std::malloc(size);
  if (block == nullptr) throw std::bad_alloc();
  ++g_blocks;
  return block;
}
[[gnu::noinline]] void operator delete(void* block) noexcept {
  g_blocks -= block != nullptr;
  std::free(block);
}
[[gnu::noinline]] void operator delete(void* block, std::size_t) noexcept { operator delete(block); }

namespace pdes {
namespace {

struct Hop {};
constexpr LpId kLps = 800;
constexpr Time kLookahead = 0.2, kArmed = 5;
std::atomic<int> g_alive{0};

struct Walker {
  using Context = pdes::Context<Hop>;
  static constexpr bool kCheckpoints = false;
  LpId arms;        // this LP arms its thread
  int fails_after;  // large allocations
  Walker(LpId who, int after) : arms(who), fails_after(after) { ++g_alive; }
  Walker(const Walker&) = delete;
  ~Walker() { --g_alive; }
  void start(Context& context) { context.send_self(context.random().exponential(1), Hop{}); }
  void on(Context& context, const Hop&) {
    if (context.id() == arms && context.now() > kArmed && fails_after > 0) t_until_it_fails = std::exchange(fails_after, 0);
    auto random = context.random();
    const LpId hot = static_cast<LpId>(context.now() * 20) % kLps;  // moves round
    const auto to = hot + random.integer(random.chance(0.7) ? kLps / 8 : kLps);
    context.send(static_cast<LpId>(to % kLps), kLookahead + random.exponential(0.5), Hop{});
  }
};

std::uint64_t run(unsigned threads, LpId arms, int fails_after) {
  Simulation simulation({.end = 60, .lookahead = kLookahead, .threads = threads, .balance_by = BalanceBy::events});
  simulation.add<Walker>(kLps, [&](LpId) { return Walker(arms, fails_after); });
  const Result result = simulation.run();
  EXPECT_EQ(result.total.parted > 0, threads > 1);
  return result.digest;
}

TEST(BalanceMemory, ARunThatHasNoneEndsAndLeavesNothing) {
  const std::uint64_t digest = run(1, 0, 0);
  int failures = 0;
  for (const LpId arms : {LpId{0}, kLps - 1}) {
    for (int after = 1; after <= 20; ++after) {
      g_failed = 0;
      try {
        EXPECT_EQ(run(2, arms, after), digest);
        EXPECT_EQ(g_failed, 0);
      } catch (const std::bad_alloc&) {
        EXPECT_EQ(g_failed, 1);
        ++failures;
      }
      t_until_it_fails = 0;
      ASSERT_EQ(g_alive, 0) << after;
    }
  }
  EXPECT_GT(failures, 10);
}

// Busy ones go round.
struct Traveller {
  using Context = pdes::Context<Hop>;
  void start(Context& context) { context.send_self(context.random().uniform(), Hop{}); }
  void on(Context& context, const Hop&) {
    const LpId first = static_cast<LpId>(context.now() * 20) % kLps;
    const bool busy = (context.id() + kLps - first) % kLps < kLps / 8;
    context.send_self(context.random().exponential(busy ? 0.1 : 1), Hop{});
  }
};

std::uint64_t travel(unsigned ranks) {
  std::uint64_t emigrated = 0;
  test::on_ranks(ranks, [&](std::size_t rank, Ranks& mine) {
    Simulation simulation({.end = 60, .lookahead = kLookahead, .threads = 1, .balance = Balance::ranks});
    simulation.add<Traveller>(kLps, [](LpId) { return Traveller(); });
    const Result result = simulation.run(&mine);
    if (rank == 0) emigrated = result.total.emigrated;
  });
  return emigrated;
}

TEST(BalanceMemory, LpsThatMoveToOtherRanksLeaveNothing) {
  travel(2);  // what a process keeps is there
  const long before = g_blocks;
  EXPECT_GT(travel(2), 100u);
  EXPECT_EQ(g_blocks, before);
}

}  // namespace
}  // namespace pdes

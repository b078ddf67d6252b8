#include "engine/reducing_barrier.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <thread>
#include <vector>

namespace pdes {
namespace {

constexpr Time kNever = std::numeric_limits<Time>::infinity();

template <class F>
void on_threads(unsigned threads, F&& f) {
  std::vector<std::thread> running;
  for (unsigned i = 0; i < threads; ++i) running.emplace_back([&f, i] { f(i); });
  for (std::thread& thread : running) thread.join();
}

// Both mechanisms, with as many CPUs as the test says there are.
class RendezvousTest : public testing::TestWithParam<std::pair<unsigned, unsigned>> {
 protected:
  unsigned threads_ = GetParam().first, cpus_ = GetParam().second;
};

TEST_P(RendezvousTest, EveryThreadLearnsTheMinimumAndAllFlags) {
  ReducingBarrier barrier(threads_, cpus_);
  std::vector<int> wrong(threads_, 0);
  on_threads(threads_, [&](unsigned me) {
    for (unsigned k = 0; k < 2000; ++k) {
      // The smallest is another thread's each time, and each raises its flag in its turn.
      const Time base = 10.0 * k, mine = base + (me + k) % threads_;
      const std::uint32_t flag = k % threads_ == me ? 1u << me : 0;
      const ReducingBarrier::Reduction all = barrier.arrive_and_reduce(me, {mine, flag});
      wrong[me] += all.least != base || all.flags != 1u << k % threads_;
    }
  });
  EXPECT_EQ(wrong, std::vector<int>(threads_, 0));
}

// What was written before a meeting may be read after it, without anything atomic: ThreadSanitizer looks.
TEST_P(RendezvousTest, NobodyComesBackBeforeAllHaveCome) {
  ReducingBarrier barrier(threads_, cpus_);
  std::vector<unsigned> round(threads_, 0), wrong(threads_, 0);
  on_threads(threads_, [&](unsigned me) {
    for (unsigned k = 1; k <= 500; ++k) {
      round[me] = k;
      barrier.arrive_and_reduce(me, {0, 0});
      for (unsigned other : round) wrong[me] += other != k;
      barrier.arrive_and_reduce(me, {0, 0});
    }
  });
  EXPECT_EQ(wrong, std::vector<unsigned>(threads_, 0));
}

// Longer than anybody polls: they sleep, are woken, and know that they waited.
TEST_P(RendezvousTest, WaitsAsleepForOneThatIsLate) {
  ReducingBarrier barrier(threads_, cpus_);
  std::vector<double> blocked(threads_, 0);
  std::atomic<unsigned> early{0};
  on_threads(threads_, [&](unsigned me) {
    for (unsigned k = 1; k <= 5; ++k) {
      if (me == 0) {
        while (early < k * (threads_ - 1)) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      } else {
        ++early;
      }
      barrier.arrive_and_reduce(me, {0, 0}, &blocked[me]);
    }
  });
  for (unsigned i = 1; i < threads_; ++i) EXPECT_GT(blocked[i], 0);
}

TEST_P(RendezvousTest, InfiniteTimesAreTimes) {
  ReducingBarrier barrier(threads_, cpus_);
  on_threads(threads_, [&](unsigned me) {
    EXPECT_EQ(barrier.arrive_and_reduce(me, {kNever, 0}).least, kNever);
    EXPECT_EQ(barrier.arrive_and_reduce(me, {me == 0 ? -kNever : kNever, 0}).least, -kNever);
    EXPECT_EQ(barrier.arrive_and_reduce(me, {me == 0 ? 1.0 : kNever, 0}).least, 1.0);
  });
}

INSTANTIATE_TEST_SUITE_P(ThreadsOnCpus, RendezvousTest,
                         testing::Values(std::pair{1u, 1u}, std::pair{2u, 2u}, std::pair{2u, 1u}, std::pair{5u, 8u},
                                         std::pair{5u, 2u}),
                         [](const auto& test) {
                           return std::to_string(test.param.first) + "on" + std::to_string(test.param.second);
                         });

TEST(Epoch, IsPastEachOfItsNumbers) {
  Epoch epoch;
  EXPECT_FALSE(epoch.is_past(epoch.own()));
  const std::uint32_t first = epoch.own();
  epoch.advance();
  EXPECT_TRUE(epoch.is_past(first));
  EXPECT_EQ(epoch.own(), first + Epoch::kStep);
}

TEST(AllowedCpus, AreAtLeastOne) { EXPECT_GE(allowed_cpus(), 1u); }

}  // namespace
}  // namespace pdes

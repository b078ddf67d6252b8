#include "engine/reducing_barrier.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

namespace pdes {
namespace {

// Threads that meet at a barrier which has been told how many CPUs there are: this decides how they meet.
class Meeting : public testing::TestWithParam<std::pair<unsigned, unsigned>> {
 protected:
  template <class F>
  void on_all_threads(F&& f) {
    std::vector<std::jthread> running;
    for (unsigned i = 0; i < threads_; ++i) running.emplace_back([&f, i] { f(i); });
  }
  unsigned threads_ = GetParam().first;
  ReducingBarrier barrier_{threads_, GetParam().second};
  std::vector<unsigned> wrong_ = std::vector<unsigned>(threads_, 0), none_ = wrong_;  // on each thread
};

TEST_P(Meeting, EveryThreadLearnsTheMinimumAndAllFlags) {
  on_all_threads([&](unsigned me) {
    for (unsigned k = 0; k < 2000; ++k) {
      // The smallest is another thread's each time, and each raises its flag in its turn.
      const Time base = 10.0 * k, mine = base + (me + k) % threads_;
      const std::uint32_t flag = k % threads_ == me ? 1u << me : 0;
      const ReducingBarrier::Reduction all = barrier_.arrive_and_reduce(me, {mine, flag});
      wrong_[me] += all.least != base || all.flags != 1u << k % threads_;
    }
    for (Time least : {kNever, -kNever, 1.0})
      wrong_[me] += barrier_.arrive_and_reduce(me, {me == 0 ? least : kNever, 0}).least != least;
  });
  EXPECT_EQ(wrong_, none_);
}

// What was written before a meeting may be read after it, without anything atomic: ThreadSanitizer looks.
TEST_P(Meeting, NobodyComesBackBeforeAllHaveCome) {
  std::vector<unsigned> round(threads_, 0);
  on_all_threads([&](unsigned me) {
    for (unsigned k = 1; k <= 500; ++k) {
      round[me] = k;
      barrier_.arrive_and_reduce(me, {0, 0});
      for (unsigned other : round) wrong_[me] += other != k;
      barrier_.arrive_and_reduce(me, {0, 0});
    }
  });
  EXPECT_EQ(wrong_, none_);
}

// Longer than anybody polls: they sleep, are woken, and know that they waited, and for whom.
TEST_P(Meeting, WaitsAsleepForOneThatIsLate) {
  std::vector<Waits> waits(threads_, Waits{0, std::vector<double>(threads_, 0)});
  std::atomic<unsigned> early{0};
  on_all_threads([&](unsigned me) {
    for (unsigned k = 1; k <= 5; ++k) {
      if (me == 0) {
        while (early < k * (threads_ - 1)) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      } else {
        ++early;
      }
      barrier_.arrive_and_reduce(me, {0, 0}, &waits[me]);
    }
  });
  for (unsigned i = 0; i < threads_; ++i) {
    if (i > 0) { EXPECT_GT(waits[i].on_s[0], 0); }
    EXPECT_EQ(waits[i].on_s[i], 0);
    EXPECT_NEAR(std::accumulate(waits[i].on_s.begin(), waits[i].on_s.end(), 0.0), waits[i].all_s, 1e-9);
  }
}

INSTANTIATE_TEST_SUITE_P(ThreadsOnCpus, Meeting,
                         testing::Values(std::pair{1u, 1u}, std::pair{2u, 2u}, std::pair{2u, 1u}, std::pair{5u, 8u},
                                         std::pair{5u, 2u}));

}  // namespace
}  // namespace pdes

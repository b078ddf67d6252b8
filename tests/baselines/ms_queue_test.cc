// The lock-free queue by itself: what its models (tests/formal) leave out, which is the code.  Its pool of nodes grows; a
// fork cuts threads off; the models' interleavings are stepped into one by one, and threads run free among few nodes.
#include "baselines/vvmalloc/ms_queue.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ostream>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace hm::vvmalloc {
namespace {

template <uint32_t kNodes>
struct Tiny : QueueSetting {
  static constexpr uint32_t kFirstNodes = 2;
  static constexpr uint32_t kMaxNodes = kNodes;
};

// Arenas are numbers from 1 on, and three times as many bytes.
template <class Q>
bool give(Q& queue, size_t n) {
  return queue.enqueue(reinterpret_cast<void*>(n), n * 3);
}
template <class Q>
size_t take(Q& queue) {
  size_t bytes = 0, n = address_of(queue.dequeue(&bytes));
  EXPECT_TRUE(n == 0 || bytes == n * 3) << "the size of another arena";
  return n;
}

TEST(MsQueue, IsFirstInFirstOutAndGrowsByChunks) {
  static constinit MsQueue queue;
  EXPECT_EQ(take(queue), 0u);
  for (size_t n = 1; n <= 100'000; ++n) ASSERT_TRUE(give(queue, n));
  EXPECT_TRUE(queue.is_valid());
  for (size_t n = 1; n <= 100'000; ++n) ASSERT_EQ(take(queue), n);
  EXPECT_EQ(take(queue), 0u);
  EXPECT_TRUE(queue.is_valid());
  EXPECT_EQ(queue.retries(), 0u);
}

TEST(MsQueue, WithoutANodeItSaysSo) {
  static constinit MsQueueOf<Tiny<3>> queue;
  EXPECT_TRUE(give(queue, 1));
  EXPECT_TRUE(give(queue, 2));
  EXPECT_FALSE(give(queue, 3));  // the dummy is the third
  EXPECT_EQ(take(queue), 1u);
  EXPECT_TRUE(give(queue, 3));
  EXPECT_TRUE(queue.is_valid());
}

// ---- Between two steps of an operation others do theirs: in the same thread, so that every run is the same. ----

// Of operations: '+' enqueues the next number, '-' dequeues.
struct Case {
  const char* name;
  const char* before;
  char operation;  // stops at this step, once
  QueueStep at;
  const char* others;
  size_t others_take;
  friend void PrintTo(const Case& the, std::ostream* out) { *out << the.name; }
};

const Case* stop = nullptr;
void (*let_others)(const Case& the) = nullptr;

template <bool kWithCounts>
struct Stepped : Tiny<1000> {
  static constexpr bool kCounts = kWithCounts;
  static void at(QueueStep step) noexcept {
    if (stop != nullptr && stop->at == step) let_others(*std::exchange(stop, nullptr));
  }
};

template <bool kWithCounts>
struct Script {
  static inline MsQueueOf<Stepped<kWithCounts>>* queue;
  static inline size_t given;
  static inline std::vector<size_t> taken;

  static void operate(const char* operations) {
    for (; *operations != '\0'; ++operations)
      if (*operations == '+') give(*queue, ++given);
      else if (size_t n = take(*queue)) taken.push_back(n);
  }
  // Whether each number came out once, the others found theirs, and the queue is sound, then too.
  static bool is_right(const Case& the) {
    MsQueueOf<Stepped<kWithCounts>> own;
    queue = &own;
    given = 0;
    taken.clear();
    operate(the.before);
    static bool sound_within;
    let_others = [](const Case& now) {
      size_t before = taken.size();
      operate(now.others);
      sound_within = taken.size() == before + now.others_take && queue->is_valid(1);
    };
    stop = &the;
    const char last[] = {the.operation, '\0'};
    operate(last);
    EXPECT_EQ(stop, nullptr) << "it did not come there";
    operate("--------------------");  // without counts it may be a ring
    std::vector<size_t> all(given);
    for (size_t i = 0; i < given; ++i) all[i] = i + 1;
    std::ranges::sort(taken);
    return sound_within && taken == all && own.is_valid();
  }
};

class MsQueueSteps : public testing::TestWithParam<Case> {};

TEST_P(MsQueueSteps, OthersGoOnAndNothingIsLost) {
  EXPECT_TRUE(Script<true>::is_right(GetParam()));
  bool needs_counts = std::string_view(GetParam().name).starts_with("aba");
  EXPECT_TRUE(!needs_counts || !Script<false>::is_right(GetParam())) << "it shows nothing: it is right without counts too";
}

INSTANTIATE_TEST_SUITE_P(, MsQueueSteps,
                         testing::Values(  // the dummy goes round and is the dummy again
                             Case{"aba_at_head", "+", '-', QueueStep::kBeforeAdvance, "-+-+", 2},
                             // the last node is freed, and is the last one of the pool
                             Case{"aba_at_link", "", '+', QueueStep::kBeforeLink, "+-", 1},
                             // of two free nodes both are taken, and the first comes back alone
                             Case{"aba_in_pool", "++--", '+', QueueStep::kFreeRead, "++--", 2},
                             // its link is null again, with a count that is the newest
                             Case{"tail_was_freed", "", '+', QueueStep::kTailRead, "+-", 1},
                             // its link is null, and there is no node null
                             Case{"head_was_freed", "++", '-', QueueStep::kHeadRead, "-", 1},
                             // others move it on
                             Case{"tail_lags", "", '+', QueueStep::kLinked, "-+-", 2},
                             Case{"stopped_before_link", "+++-", '+', QueueStep::kBeforeLink, "++++--------++", 6},
                             Case{"stopped_when_linked", "+++-", '+', QueueStep::kLinked, "++++--------++", 7},
                             Case{"stopped_before_advance", "+++-", '-', QueueStep::kBeforeAdvance, "++++--------++", 6},
                             Case{"stopped_when_advanced", "+++-", '-', QueueStep::kAdvanced, "++++--------++", 5}),
                         [](const auto& of) { return of.param.name; });

// ---- Threads. ----

constexpr size_t kThreads = 3, kEach = kThreadSanitizer ? 60'000 : 200'000;

// Each element exactly once; a consumer sees those of one producer in their order.
template <uint32_t kNodes>
void expect_exactly_once() {
  static constinit MsQueueOf<Tiny<kNodes>> queue;
  std::atomic<size_t> left = kThreads * kEach;
  std::vector<std::atomic<int>> times(kThreads * kEach + 1);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([t] {
      for (size_t n = 1; n <= kEach; ++n)
        while (!give(queue, t * kEach + n)) std::this_thread::yield();
    });
    threads.emplace_back([&] {
      std::array<size_t, kThreads> last{};
      while (left > 0) {
        size_t n = take(queue);
        if (n == 0) {
          std::this_thread::yield();
          continue;
        }
        --left;
        ++times[n];
        EXPECT_LT(std::exchange(last[(n - 1) / kEach], n), n) << "out of order";
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t n = 1; n < times.size(); ++n) ASSERT_EQ(times[n], 1) << n;
  EXPECT_TRUE(queue.is_valid());
  EXPECT_EQ(take(queue), 0u);
}
TEST(MsQueueStress, ThreeNodes) { expect_exactly_once<3>(); }
TEST(MsQueueStress, EightNodes) { expect_exactly_once<8>(); }

// Threads that need the same new chunk at the same time: no node is lost, and none is given twice.
TEST(MsQueueStress, NewNodesForEverybody) {
  constexpr size_t kNodes = 500;
  for (int round = 0; round < 200; ++round) {
    MsQueueOf<Tiny<kNodes>> queue;
    std::atomic<size_t> ready{0};
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; ++t)
      threads.emplace_back([&] {
        ++ready;
        while (ready < kThreads) std::this_thread::yield();
        while (give(queue, 1)) continue;
      });
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(queue.is_valid());
    size_t taken = 0;
    while (take(queue) != 0) ++taken;
    ASSERT_EQ(taken, kNodes - 1) << "the dummy is a node too";
  }
}

// In the child, whose other threads are gone: everything still there at most once, and the queue goes on.  The exit
// status says what was wrong.
template <class Q>
int child(Q& queue, size_t numbers) {
  if (!queue.is_valid(kThreads)) return 1;
  size_t found = 0;
  std::array<bool, 64> seen{};
  while (size_t n = take(queue))
    if (std::exchange(seen[n], true) || ++found > numbers) return 2;
  if (found + kThreads < numbers) return 3;  // each thread held one at most
  for (size_t n = 1; n <= 5; ++n)
    if (!give(queue, n)) return 4;
  for (size_t n = 1; n <= 5; ++n)
    if (take(queue) != n) return 5;
  return queue.is_valid(kThreads) ? 0 : 6;
}

TEST(MsQueueStress, GoesOnInTheChildOfAFork) {
  constexpr size_t kNumbers = 6;
  static constinit MsQueueOf<Tiny<64>> queue;  // the nodes on other pages than the queue itself
  for (size_t n = 1; n <= kNumbers; ++n) ASSERT_TRUE(give(queue, n));
  std::atomic<bool> stopped{false};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      while (!stopped)
        if (size_t n = take(queue)) give(queue, n);  // there are nodes enough
    });
  for (int round = 0; round < 100; ++round) {
    pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) _exit(child(queue, kNumbers));
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0) << "round " << round << ", check " << WEXITSTATUS(status);
  }
  stopped = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(queue.is_valid());
}

}  // namespace
}  // namespace hm::vvmalloc

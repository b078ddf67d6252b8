// The lock-free queue by itself.  A test can step between two steps of an operation: what other threads might do there
// is then done there, in the same thread, and the outcome is the same at every run.
#include "baselines/vvmalloc/ms_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <utility>
#include <vector>

namespace hm::vvmalloc {
namespace {

// What happens at a step of this thread's next operation, once.
struct Interruption {
  QueueStep at;
  std::function<void()> what;
};
thread_local Interruption* interruption = nullptr;

template <bool kWithCounts, uint32_t kNodes>
struct Tested : QueueSetting {
  static constexpr uint32_t kFirstNodes = 2;
  static constexpr uint32_t kMaxNodes = kNodes;
  static constexpr bool kCounts = kWithCounts;
  static void at(QueueStep step) noexcept {
    if (interruption == nullptr || interruption->at != step) return;
    Interruption now = std::move(*std::exchange(interruption, nullptr));
    now.what();
  }
};
using Queue = MsQueueOf<Tested<true, 1000>>;
using Uncounted = MsQueueOf<Tested<false, 1000>>;

std::array<char, 100'000> arenas;  // only their addresses matter
void* arena(size_t n) { return &arenas[n]; }
size_t number_of(void* arena) { return static_cast<size_t>(static_cast<char*>(arena) - arenas.data()); }

template <class Q>
void* take(Q& queue) {
  size_t bytes = 0;
  void* got = queue.dequeue(&bytes);
  EXPECT_TRUE(got == nullptr || bytes == number_of(got) * 10) << "the size of another arena";
  return got;
}
template <class Q>
bool give(Q& queue, size_t n) {
  return queue.enqueue(arena(n), n * 10);
}

TEST(MsQueue, FirstInFirstOut) {
  static constinit MsQueue queue;
  EXPECT_EQ(take(queue), nullptr);
  for (size_t n = 0; n < 3; ++n) EXPECT_TRUE(give(queue, n));
  EXPECT_EQ(take(queue), arena(0));
  EXPECT_TRUE(give(queue, 3));
  for (size_t n = 1; n < 4; ++n) EXPECT_EQ(take(queue), arena(n));
  EXPECT_EQ(take(queue), nullptr);
  EXPECT_TRUE(queue.is_valid());
  EXPECT_EQ(queue.retries(), 0u);
}

TEST(MsQueue, GrowsByChunks) {
  static constinit MsQueue queue;
  for (size_t n = 0; n < arenas.size(); ++n) ASSERT_TRUE(give(queue, n));
  EXPECT_TRUE(queue.is_valid());
  for (size_t n = 0; n < arenas.size(); ++n) ASSERT_EQ(take(queue), arena(n));
  EXPECT_TRUE(queue.is_valid());
}

TEST(MsQueue, WithoutANodeItSaysSo) {
  static constinit MsQueueOf<Tested<true, 3>> queue;
  EXPECT_TRUE(give(queue, 0));
  EXPECT_TRUE(give(queue, 1));
  EXPECT_FALSE(give(queue, 2));  // the dummy is the third
  EXPECT_EQ(take(queue), arena(0));
  EXPECT_TRUE(give(queue, 2));
  EXPECT_EQ(take(queue), arena(1));
  EXPECT_EQ(take(queue), arena(2));
  EXPECT_TRUE(queue.is_valid());
}

// ---- ABA, with the counts and without them. ----

struct Outcome {
  std::vector<size_t> taken;  // by everybody, in order, until the queue was empty
  bool valid;
  bool operator==(const Outcome&) const = default;
};

template <class Q>
bool take_into(Q& queue, std::vector<size_t>& into) {
  void* got = take(queue);
  if (got != nullptr) into.push_back(number_of(got));
  return got != nullptr;
}
// A queue without counts may have become a ring.
template <class Q>
void drain(Q& queue, std::vector<size_t>& into) {
  for (int most = 20; most > 0 && take_into(queue, into); --most) {}
}

// A dequeuer has read the first arena and waits; the dummy that it saw goes round and is the dummy again.
template <class Q>
Outcome aba_at_head() {
  Q queue;
  std::vector<size_t> taken;
  give(queue, 1);
  Interruption others{QueueStep::kBeforeAdvance, [&] {
                        take_into(queue, taken);
                        give(queue, 2);
                        take_into(queue, taken);
                        give(queue, 3);
                      }};
  interruption = &others;
  take_into(queue, taken);
  drain(queue, taken);
  return {taken, queue.is_valid()};
}
TEST(MsQueueAba, Head) {
  Outcome right{{1, 2, 3}, true};
  EXPECT_EQ(aba_at_head<Queue>(), right);
  EXPECT_EQ(aba_at_head<Uncounted>().taken, (std::vector<size_t>{1, 2, 1}));  // the first twice, the third never
}

// An enqueuer has found the last node and waits; that node is freed, and is the last one of the pool.
template <class Q>
Outcome aba_at_link() {
  Q queue;
  std::vector<size_t> taken;
  Interruption others{QueueStep::kBeforeLink, [&] {
                        give(queue, 1);
                        take_into(queue, taken);
                      }};
  interruption = &others;
  give(queue, 2);
  drain(queue, taken);
  return {taken, queue.is_valid()};
}
TEST(MsQueueAba, Link) {
  Outcome right{{1, 2}, true};
  EXPECT_EQ(aba_at_link<Queue>(), right);
  EXPECT_EQ(aba_at_link<Uncounted>().taken, (std::vector<size_t>{1}));  // the second hangs on a free node
}

// A thread is about to take the first of two free nodes; both are taken, and the first comes back alone.
template <class Q>
Outcome aba_in_pool() {
  Q queue;
  std::vector<size_t> taken;
  for (size_t n = 1; n <= 2; ++n) give(queue, n);
  drain(queue, taken);
  Interruption others{QueueStep::kFreeRead, [&] {
                        give(queue, 3);
                        give(queue, 4);
                        take_into(queue, taken);
                        take_into(queue, taken);
                      }};
  interruption = &others;
  give(queue, 5);
  give(queue, 6);
  drain(queue, taken);
  return {taken, queue.is_valid()};
}
TEST(MsQueueAba, Pool) {
  Outcome right{{1, 2, 3, 4, 5, 6}, true};
  EXPECT_EQ(aba_in_pool<Queue>(), right);
  Outcome wrong = aba_in_pool<Uncounted>();
  EXPECT_NE(wrong.taken, right.taken);
  EXPECT_FALSE(wrong.valid);
}

// ---- The second looks. ----

TEST(MsQueueSecondLook, TailWasFreed) {  // its link is null again, with a count that is the newest
  Queue queue;
  std::vector<size_t> taken;
  Interruption others{QueueStep::kTailRead, [&] {
                        give(queue, 1);
                        take_into(queue, taken);
                      }};
  interruption = &others;
  give(queue, 2);
  drain(queue, taken);
  EXPECT_EQ(taken, (std::vector<size_t>{1, 2}));
  EXPECT_TRUE(queue.is_valid());
}

TEST(MsQueueSecondLook, HeadWasFreed) {  // its link is null, and there is no node null
  Queue queue;
  std::vector<size_t> taken;
  for (size_t n = 1; n <= 2; ++n) give(queue, n);
  Interruption others{QueueStep::kHeadRead, [&] { take_into(queue, taken); }};
  interruption = &others;
  drain(queue, taken);
  EXPECT_EQ(taken, (std::vector<size_t>{1, 2}));
  EXPECT_TRUE(queue.is_valid());
}

TEST(MsQueueSecondLook, LaggingTailIsMovedByADequeuer) {
  Queue queue;
  std::vector<size_t> taken;
  Interruption others{QueueStep::kLinked, [&] { drain(queue, taken); }};
  interruption = &others;
  give(queue, 1);
  EXPECT_EQ(taken, std::vector<size_t>{1});
  EXPECT_TRUE(give(queue, 2));
  EXPECT_EQ(take(queue), arena(2));
  EXPECT_TRUE(queue.is_valid());
}

// ---- Threads that stop for good, as far as the others can see. ----

void others_go_on(Queue& queue) {
  std::vector<size_t> taken;
  for (size_t n = 10; n < 20; ++n) EXPECT_TRUE(give(queue, n));
  drain(queue, taken);
  EXPECT_GE(taken.size(), 10u);
  EXPECT_EQ(std::vector<size_t>(taken.end() - 10, taken.end()),
            (std::vector<size_t>{10, 11, 12, 13, 14, 15, 16, 17, 18, 19}));
  EXPECT_EQ(take(queue), nullptr);
}

TEST(MsQueue, AThreadThatStopsWithinAnOperationStopsNobody) {
  for (QueueStep step : {QueueStep::kTailRead, QueueStep::kBeforeLink, QueueStep::kLinked, QueueStep::kHeadRead,
                         QueueStep::kBeforeAdvance, QueueStep::kAdvanced, QueueStep::kFreeRead}) {
    Queue queue;
    for (size_t n = 1; n <= 3; ++n) give(queue, n);
    take(queue);  // so that there is a free node
    bool came = false;
    Interruption others{step, [&] {
                          came = true;
                          EXPECT_TRUE(queue.is_valid(1)) << "step " << int(step);
                          others_go_on(queue);
                          EXPECT_TRUE(queue.is_valid(1)) << "step " << int(step);
                        }};
    interruption = &others;
    bool enqueues = step < QueueStep::kHeadRead || step == QueueStep::kFreeRead;
    enqueues ? void(give(queue, 4)) : void(take(queue));
    EXPECT_TRUE(came);
    others_go_on(queue);
    EXPECT_TRUE(queue.is_valid()) << "step " << int(step);
  }
}

}  // namespace
}  // namespace hm::vvmalloc

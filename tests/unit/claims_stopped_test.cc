// Claims of heaps whose threads were stopped at any instruction, or awake at any, or fork.
#include "at_every_instruction.h"

#if HM_STEPS && !defined(__SANITIZE_ADDRESS__)

#include <hmalloc/hmalloc_local.h>

#include <atomic>

#include "sleeper.h"

using namespace hm;
using namespace hm::test;

namespace {

// Stops after each instruction of the operation at which may_stop() while another thread runs `meanwhile`.  Where others use
// the machine a stop takes as long as their turns: what is left after two seconds goes by without.
size_t stop_at_every_instruction(const std::function<void()>& operation, const std::function<void()>& meanwhile,
                                 const std::function<bool()>& may_stop) {
  std::atomic<int> turn{0};  // 1: the other's; 2: the end
  std::jthread other([&] {
    for (;;) {
      turn.wait(0);
      if (turn == 2) return;
      meanwhile();
      turn = 0;
      turn.notify_one();
    }
  });
  const auto last = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  auto let_the_other_work = [&] {
    if (!may_stop() || std::chrono::steady_clock::now() > last) return false;
    turn = 1;
    turn.notify_one();
    turn.wait(1);
    return false;
  };
  Steps steps = fork_at_every_instruction(operation, [] { return true; }, {.worth_a_fork = let_the_other_work});
  turn = 2;
  turn.notify_one();
  return steps.seen;
}

void* volatile sink;
bool holds_no_lock() { return !holds_a_lock(); }  // or the collector would wait for it

}  // namespace

// The thread is stopped after each instruction of its operations, and its heap is claimed there.
TEST_F(AClaim, AtEveryInstructionOfTheHeapsThread) {
  on_thread([] {
    std::vector<void*> mine = allocate_many(300, 64);
    for (unsigned i = 0; i < 300; ++i) fill(mine[i], 64, i);
    auto run = [&](const std::function<void()>& operation) {
      EXPECT_GT(stop_at_every_instruction(operation, take_from_sleepers, holds_no_lock), 10u);
      EXPECT_TRUE(my_heap_is_valid());
    };
    auto with_cached = [&](unsigned n) {  // caches of so many entries, open
      hm_collect();
      free_all(allocate_many(n, 64));
    };
    for (unsigned n : {0u, 1u, 2u, 3u, 60u, 127u}) {
      with_cached(n);
      run([&] { hm_free(std::exchange(mine[n], nullptr)); });
      with_cached(n);
      run([&] { fill(mine[n] = hm_malloc(64), 64, n); });
      with_cached(n);
      run([&] { hm_free_sized(std::exchange(mine[n], nullptr), 64); });
      with_cached(n);
      run([&] { fill(mine[n] = hm_calloc(8, 8), 64, n); });
      with_cached(n);
      run([&] { hm_local_free_sized(std::exchange(mine[n], nullptr), 64); });
      with_cached(n);
      run([&] { fill(mine[n] = hm_local_alloc(64), 64, n); });
      with_cached(n);
      run([&] {  // one after another, with the caches as the claims leave them
        for (int i = 0; i < 4; ++i) sink = hm_local_alloc(64), hm_local_free_sized(sink, 64), hm_free(hm_malloc(500));
      });
    }
    with_cached(60);
    run([] { hm_free(hm_malloc(100'000)); });
    run([] { hm_free(hm_malloc(100'000)); });
    run([] { hm_thread_idle(); });
    run([] { hm_free(hm_malloc(64)); });
    std::set<void*> distinct(mine.begin(), mine.end());
    EXPECT_EQ(distinct.size(), 300u);
    for (unsigned i = 0; i < 300; ++i) EXPECT_TRUE(matches(mine[i], 64, i));
    free_all(mine);
    hm_collect();
  });
}

// The collector is stopped after each instruction, and the heap's thread pops and pushes meanwhile: it must be in no slow
// path, where it would wait for the collector.
TEST_F(AClaim, WhoseThreadAwakesAtAnyInstruction) {
  constexpr size_t kClass = index_of(class_of(64));
  std::mt19937 random(kSeed);
  Sleeper sleeper;
  ThreadHeap* heap = nullptr;
  sleeper.does([&] {
    free_all(allocate_many(100, 64));
    heap = &my_thread_heap();
  });
  std::vector<void*> held;
  size_t moved = 0, emptied = 0;
  // Where the collector is stopped depends on the compiler, and so does how often it comes to the end.
  for (int run = 0; run < 40 || (emptied <= 5 && run < 400); ++run) {
    sleeper.does([&] {
      free_all(std::exchange(held, {}));
      free_all(allocate_many(1 + random() % 20, 64));
    });
    size_t at = random() % 150, count = 0;
    auto pop_and_push = [&] {
      BlockCache& cache = heap->caches[kClass];
      for (size_t pops = random() % 4; pops > 0; --pops)
        if (void* block = cache.pop()) {
          find_block(block).state.mark_taken();
          held.push_back(block), ++moved;
        }
      for (size_t pushes = random() % 3; pushes > 0 && !held.empty(); --pushes)
        if (cache.push(held.back())) {
          if (kChecked) find_block(held.back()).state.mark_cached();
          held.pop_back(), ++moved;
        }
    };
    stop_at_every_instruction(take_from_sleepers, pop_and_push, [&] { return ++count % 150 == at; });
    emptied += heap->claim == Claim::kEmptied;
    for (void* block : held) ASSERT_FALSE(find_block(block).state.is_free()) << "the collector has taken it, too";
    std::set<void*> distinct(held.begin(), held.end());
    sleeper.does([&] {
      {
        HeapUse use(*heap);
        EXPECT_TRUE(heap->is_valid());
        for (size_t i = 1; i <= heap->caches[kClass].size(); ++i) distinct.insert(heap->caches[kClass].bottom()[i]);
      }
      ASSERT_EQ(distinct.size(), held.size() + heap->cached_blocks(kClass)) << "a block is in two places";
    });
  }
  EXPECT_GT(moved, 200u);
  EXPECT_GT(emptied, 5u);
  sleeper.does([&] {
    free_all(held);
    hm_collect();
  });
}

// The thread has said that it uses its heap, and has not looked yet whether somebody wants it.
TEST_F(AClaim, IsGivenUpIfTheHeapIsUsedMeanwhile) {
  Sleeper sleeper;
  ThreadHeap* heap = nullptr;
  sleeper.does([&] {
    free_all(allocate_many(100, 64));
    heap = &my_thread_heap();
  });
  size_t before = cached_in(*heap);
  auto is_wanted = [&] { return heap->claim == Claim::kWanted && !heap->in_use; };
  stop_at_every_instruction(take_from_sleepers, [&] { heap->in_use = true; }, is_wanted);
  EXPECT_TRUE(heap->in_use);
  EXPECT_EQ(heap->claim.load(), Claim::kNone);
  EXPECT_EQ(cached_in(*heap), before);
  heap->in_use = false;
  sleeper.does([] { hm_collect(); });
}

// Between the collector's look at the top and the fence, the thread pops what lies there, and pushes it back if it can.
TEST_F(AClaim, WhoseThreadAwakesInFrontOfTheFence) {
  Sleeper sleeper;
  ThreadHeap* heap = nullptr;
  size_t fenced_at = SIZE_MAX;
  for (size_t back = 0; back < 12; ++back) {
    sleeper.does([&] {
      hm_collect();
      free_all(allocate_many(10, 64));
      heap = &my_thread_heap();
    });
    BlockCache& cache = heap->caches[index_of(class_of(64))];
    std::vector<void*> popped;
    size_t count = 0;
    auto is_before_fence = [&] {
      if (heap->claim != Claim::kClaimed) return false;
      ++count;
      if (back == 0 && fenced_at == SIZE_MAX && cache.top()[-1] == nullptr) fenced_at = count;
      return back > 0 && count == fenced_at - back;
    };
    auto pop_and_push = [&] {
      for (int i = 0; i < 3; ++i) {
        popped.push_back(cache.pop());
        find_block(popped.back()).state.mark_taken();
      }
      EXPECT_FALSE(cache.push(popped.back())) << "a closed cache";
    };
    stop_at_every_instruction(take_from_sleepers, pop_and_push, is_before_fence);
    ASSERT_LT(fenced_at, SIZE_MAX);
    EXPECT_EQ(popped.size(), back == 0 ? 0u : 3u);
    for (void* block : popped) EXPECT_FALSE(find_block(block).state.is_free()) << "taken from who has popped it";
    sleeper.does([&] {
      EXPECT_TRUE(my_heap_is_valid());
      free_all(popped);
    });
  }
  sleeper.does([] { hm_collect(); });
}

// The child of a fork by the very thread whose heap was being claimed.
TEST_F(AClaim, CutOffByAForkAtEveryInstruction) {
  Sleeper sleeper;
  ThreadHeap* heap = nullptr;
  size_t cached = 0;
  auto check = [&] {
    set_my_heap(heap);
    size_t all = allocated_after_collect();
    return all <= 512 && allocator_works() && my_heap_is_valid() && !heap->shelf.stranded;
  };
  auto check_without_lock = [&] {  // which finds its caches as they were left
    set_my_heap(heap);
    std::vector<void*> blocks = allocate_many(50, 64);
    bool distinct = std::set<void*>(blocks.begin(), blocks.end()).size() == 50;
    free_all(blocks);
    return distinct && check();
  };
  for (auto& each : {std::function<bool()>(check), std::function<bool()>(check_without_lock)}) {
    sleeper.does([&] {
      for (size_t size : {64u, 500u}) free_all(allocate_many(20, size));
      hm_free(hm_malloc(100'000));
      hm_free(hm_malloc(100'000));
      heap = &my_thread_heap();
      cached = cached_in(*heap);
    });
    Steps steps = fork_at_every_instruction(take_from_sleepers, each, {.stride = 61});
    EXPECT_EQ(steps.failed, 0u);
    EXPECT_GT(steps.forks, 50u);
    EXPECT_LT(cached_in(*heap), cached);
  }
  sleeper.does([] { hm_collect(); });
}

#endif

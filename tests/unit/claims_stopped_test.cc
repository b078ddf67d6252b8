// Claims of heaps whose threads were stopped at any instruction, or awake at any, or fork.
#include "at_every_instruction.h"

#if HM_STEPS && !defined(__SANITIZE_ADDRESS__)

#include <sched.h>

#include <atomic>

#include "sleeper.h"

using namespace hm;
using namespace hm::test;

namespace {

// Stops after each instruction of the operation at which may_stop() while another thread runs `meanwhile`.
size_t stop_at_every_instruction(const std::function<void()>& operation, const std::function<void()>& meanwhile,
                                 const std::function<bool()>& may_stop) {
  std::atomic<int> turn{0};  // 1: the other's; 2: the end
  std::jthread other([&] {
    for (;;) {
      while (turn == 0) std::this_thread::yield();
      if (turn == 2) return;
      meanwhile();
      turn = 0;
    }
  });
  auto let_the_other_work = [&] {
    if (!may_stop()) return false;
    turn = 1;
    while (turn == 1) sched_yield();
    return false;
  };
  Steps steps = fork_at_every_instruction(operation, [] { return true; }, {.worth_a_fork = let_the_other_work});
  turn = 2;
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
      run([&] {  // one after another, with the caches as the claims leave them
        for (int i = 0; i < 4; ++i) sink = hm_malloc(64), hm_free(sink), hm_free(hm_malloc(500));
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
  for (int run = 0; run < 40; ++run) {
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

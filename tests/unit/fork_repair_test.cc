// What the child of a fork finds when another thread was cut off at any instruction, and what its repair makes of it.
#include "at_every_instruction.h"

#if HM_STEPS

#include <array>
#include <atomic>

#include "base/process.h"
#include "core/superblock_pool.h"
#include "large/huge.h"
#include "threads/registry.h"

using namespace hm;
using test::fork_at_every_instruction;
using test::on_thread;
using test::Steps;

namespace {

void expect_all_good(const Steps& steps, const std::string& what) {
  EXPECT_EQ(steps.failed, 0u) << what << ": the child of the fork at this instruction failed";
  EXPECT_GT(steps.seen, 10u) << what;
}

// ---- queues

struct Queue {
  std::vector<Superblock> sbs = std::vector<Superblock>(8);
  SuperblockQueue queue;
  explicit Queue(size_t n) {
    for (size_t i = 0; i < n; ++i) queue.push(sbs[i]);
  }
  // Nothing is twice in it, it has as many as before or after the operation, and it works.
  bool is_sound(size_t least, size_t most) {
    repair_after_fork(queue.lock(), 0, [&] { queue.repair(); });
    if (!queue.is_valid() || queue.count() < least || queue.count() > most) return false;
    std::set<Superblock*> seen;
    queue.for_each([&](Superblock& sb) { seen.insert(&sb); });
    if (seen.size() != queue.count()) return false;
    Superblock other;
    queue.push(other);
    Superblock* last = nullptr;
    while (Superblock* sb = queue.pop()) last = sb;
    return last == &other && queue.is_valid();
  }
};

void test_queue(const char* name, int change, void (*operation)(Queue&)) {
  for (size_t n = 0; n < 4; ++n) {
    Queue q(n);
    auto after = static_cast<size_t>(std::max(static_cast<int>(n) + change, 0));
    Steps steps =
        fork_at_every_instruction([&] { operation(q); }, [&] { return q.is_sound(std::min(n, after), std::max(n, after)); });
    expect_all_good(steps, std::string(name) + " of " + std::to_string(n));
    EXPECT_EQ(q.queue.count(), after);
  }
}

Superblock* three(Queue& q) {
  q.sbs[5].next = &q.sbs[6];
  q.sbs[6].next = &q.sbs[7];
  return &q.sbs[5];
}

}  // namespace

TEST(ForkRepair, QueuesAtEveryInstruction) {
  test_queue("push", 1, [](Queue& q) { q.queue.push(q.sbs[7]); });
  test_queue("push_front", 1, [](Queue& q) { q.queue.push_front(q.sbs[7]); });
  test_queue("pop", -1, [](Queue& q) { q.queue.pop(); });
  test_queue("pop_some", -2, [](Queue& q) { q.queue.pop_some(2); });
  test_queue("push_all", 3, [](Queue& q) { q.queue.push_all(three(q)); });
}

// ---- slices

namespace {

constexpr size_t kLongest = 10;  // slices that an operation takes or frees

// A pool that is sound hands out what it says is zero, and counts all but what is held or in somebody's hands.
bool is_sound(SlicePool& pool, size_t held) {
  pool.repair(0);
  if (!pool.is_valid()) return false;
  SlicePool::Gauges g = pool.gauges();
  size_t regions = (g.chunks * kChunk + g.space) / kRegion;
  size_t all = g.chunks * kSlicesInChunk, accounted = g.free_slices + held + regions * kMetaSlices;
  if (accounted < all) return false;
  constexpr std::array<size_t, 4> kLengths = {1, 6, 31, kSlicesInChunk};
  std::array<SlicePool::Run, kLengths.size()> runs;
  for (size_t i = 0; i < runs.size(); ++i) {
    runs[i] = pool.allocate(kLengths[i], true);
    for (size_t slice = 0; slice < kLengths[i]; ++slice) {
      char* start = runs[i].first->base() + slice * kSlice;
      if (runs[i].zeroed && !test::is_zero(start, kLine)) return false;
      *start = 1;
    }
  }
  if (!pool.is_valid()) return false;
  for (size_t i = 0; i < runs.size(); ++i) pool.release(*runs[i].first, kLengths[i]);
  pool.purge(SlicePool::Purge::kAll);
  return pool.is_valid();
}

struct Slices {
  SlicePool pool;
  SlicePool::Run run;
  Slices() {
    run = pool.allocate(4, true);
    SlicePool::Run other = pool.allocate(kLongest, true);
    memset(other.first->base(), 1, kLongest * kSlice);
    pool.release(*other.first, kLongest);
  }
};

void test_slices(const char* name, void (*prepare)(SlicePool&), void (*operation)(Slices&), size_t held = 4,
                 size_t stride = 1) {
  Slices slices;
  prepare(slices.pool);
  ASSERT_TRUE(slices.pool.is_valid()) << name;
  expect_all_good(fork_at_every_instruction([&] { operation(slices); }, [&] { return is_sound(slices.pool, held); }, stride),
                  name);
  EXPECT_TRUE(slices.pool.is_valid()) << name;
}

void nothing(SlicePool&) {}

}  // namespace

TEST(ForkRepair, RunsOfSlicesAtEveryInstruction) {
  test_slices("allocate", nothing, [](Slices& s) { s.pool.allocate(3, false); }, 4 + 3);
  test_slices("allocate dirty ones", nothing, [](Slices& s) { s.pool.allocate(kLongest, false); }, 4 + kLongest);
  test_slices("release", nothing, [](Slices& s) { s.pool.release(*s.run.first, 4); });
  test_slices("extend", nothing, [](Slices& s) { s.pool.extend(*s.run.first, 4, 6); }, 6);
}

TEST(ForkRepair, ChunksAreOpenedAtEveryInstruction) {
  test_slices("the second", nothing, [](Slices& s) { s.pool.allocate(kSlicesInChunk, true); }, 4 + kSlicesInChunk);
  test_slices(
      "a region's first",
      [](SlicePool& pool) {
        for (size_t i = 1; i < kChunksInRegion; ++i) pool.allocate(kSlicesInChunk, true);
      },
      [](Slices& s) { s.pool.allocate(kSlicesInChunk / 2, true); }, kChunksInRegion * kSlicesInChunk, 7);
}

TEST(ForkRepair, PurgesAtEveryInstruction) {
  test_slices("purge", nothing, [](Slices& s) { s.pool.purge(SlicePool::Purge::kAll); });
  test_slices(
      "two rounds", nothing, [](Slices& s) { s.pool.purge(SlicePool::Purge::kDue), s.pool.purge(SlicePool::Purge::kDue); },
      4, 3);
  test_slices(
      "a purge that closes a chunk",
      [](SlicePool& pool) {
        SlicePool::Run run = pool.allocate(kSlicesInChunk, true);
        memset(run.first->base(), 1, kSlicesInChunk * kSlice);
        pool.release(*run.first, kSlicesInChunk);
      },
      [](Slices& s) { s.pool.purge(SlicePool::Purge::kAll); }, 4, 5);
}

TEST(ForkRepair, RegionsAreUnmappedAtEveryInstruction) {
  test_slices(
      "unmap",
      [](SlicePool& pool) {
        std::vector<SlicePool::Run> runs;
        for (size_t i = 0; i < kChunksInRegion; ++i) runs.push_back(pool.allocate(kSlicesInChunk / 4 + 1, true));
        for (size_t i = 1; i < kChunksInRegion; ++i) runs.push_back(pool.allocate(kSlicesInChunk, true));
        SlicePool::Run last = pool.allocate(10, true);
        for (size_t i = kChunksInRegion; i < runs.size(); ++i) pool.release(*runs[i].first, kSlicesInChunk);
        for (size_t i = 0; i < kChunksInRegion; ++i) pool.release(*runs[i].first, kSlicesInChunk / 4 + 1);
        pool.release(*last.first, 10);
      },
      [](Slices& s) { s.pool.purge(SlicePool::Purge::kAll); }, 4, 31);
}

// ---- heaps, and everything together

namespace {

bool all_is_valid() {
  return test::everything_is_valid() && superblock_pool.is_valid() && slice_pool.is_valid() && registry.is_valid();
}

bool allocator_works() {
  for (size_t size = 1; size < 900'000; size = size * 3 + 1) {
    void* block = hm_malloc(size);
    if (block == nullptr) return false;
    test::fill(block, size, 1);
    hm_free(block);
  }
  hm_local_free(hm_local_alloc(100));
  if (!all_is_valid()) return false;
  hm_collect();
  return all_is_valid();
}

size_t heaps_in_use() {
  size_t n = 0;
  registry.for_each([&](ThreadHeap& heap) { n += !heap.shelf.stranded; });
  return n;
}

void leave_dead_heaps(size_t n) {
  std::vector<std::thread> threads;
  std::atomic<size_t> arrived{0};
  for (size_t i = 0; i < n; ++i)
    threads.emplace_back([&] {
      std::array<void*, 50> blocks;
      for (void*& block : blocks) block = hm_malloc(100);
      for (void* block : blocks) hm_free(block);
      arrived.fetch_add(1);
      while (arrived.load() < n) std::this_thread::yield();
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

namespace {

class AttachedThread {
 public:
  AttachedThread() {
    while (!attached_.load()) std::this_thread::yield();
  }
  ~AttachedThread() {
    done_.store(true);
    thread_.join();
  }

 private:
  std::atomic<bool> attached_{false}, done_{false};
  std::thread thread_{[this] {
    registry.attach();
    attached_.store(true);
    while (!done_.load()) std::this_thread::yield();
  }};
};

}  // namespace

TEST(ForkRepair, AThreadGetsAndLosesItsHeapAtEveryInstruction) {
  leave_dead_heaps(3);
  expect_all_good(fork_at_every_instruction([] { registry.attach(); }, allocator_works), "inherit");
  on_thread([] {
    registry.attach();
    AttachedThread next;  // to the heap that was behind this one's when it was dead
    expect_all_good(fork_at_every_instruction([] { detach(&my_thread_heap()); }, allocator_works), "publish");
    registry.attach();  // the thread's end will take it away once more
  });
  on_thread([] {
    while (registry.attach() != nullptr && heaps_in_use() < 4) set_my_heap(nullptr);  // or it has one already
    set_my_heap(nullptr);
    expect_all_good(fork_at_every_instruction([] { registry.attach(); }, allocator_works, 31), "create");
  });
}

// Of the heaps that are being drained one at most is lost.
TEST(ForkRepair, DeadHeapsAreDrainedAtEveryInstruction) {
  leave_dead_heaps(3);
  expect_all_good(fork_at_every_instruction([] { registry.drain_dead(Registry::Drain::kAll); },
                                            [] { return allocator_works() && heaps_in_use() >= 2; }, 61),
                  "drain");
}

TEST(ForkRepair, TheFallbackAtEveryInstruction) {
  leave_dead_heaps(1);
  auto use = [] { registry.with_fallback([](ThreadHeap& heap) { return heap.refill(class_of(500)); }); };
  expect_all_good(
      fork_at_every_instruction(use, [use] { return allocator_works() && (use(), all_is_valid()); }, 17), "fallback");
}

TEST(ForkRepair, BlocksOfAllKindsAtEveryInstruction) {
  auto work = [] {
    for (size_t size : {20u, 3000u, 20000u, 60000u, 700000u}) hm_free(hm_malloc(size));
    hm_local_free(hm_local_alloc(200));
  };
  expect_all_good(fork_at_every_instruction(work, allocator_works, 23), "first use");
  expect_all_good(fork_at_every_instruction([] { hm_collect(); }, allocator_works, 197), "collect");
}

#endif

// What the child of a fork finds when another thread was cut off at any instruction, and what its repair makes of it.
#include "at_every_instruction.h"

#if HM_STEPS && !defined(__SANITIZE_ADDRESS__)

#include <hmalloc/hmalloc_local.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <barrier>

#include "core/superblock_pool.h"
#include "pages/options.h"
#include "threads/registry.h"
#include "upkeep/hole_passes.h"

using namespace hm;
using namespace hm::test;

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

Superblock* three(Queue& q) {
  q.sbs[5].next = &q.sbs[6];
  q.sbs[6].next = &q.sbs[7];
  return &q.sbs[5];
}

}  // namespace

TEST(ForkRepair, QueuesAtEveryInstruction) {
  struct {
    const char* name;
    int change;
    void (*operation)(Queue&);
  } cases[] = {{"push", 1, [](Queue& q) { q.queue.push(q.sbs[7]); }},
               {"push_front", 1, [](Queue& q) { q.queue.push_front(q.sbs[7]); }},
               {"pop", -1, [](Queue& q) { q.queue.pop(); }},
               {"pop_some", -2, [](Queue& q) { q.queue.pop_some(2); }},
               {"push_all", 3, [](Queue& q) { q.queue.push_all(three(q)); }}};
  for (auto [name, change, operation] : cases)
    for (int before = 0; before < 4; ++before) {
      Queue q(static_cast<size_t>(before));
      auto [least, most] =
          std::minmax<size_t>({static_cast<size_t>(before), static_cast<size_t>(std::max(before + change, 0))});
      expect_all_good(fork_at_every_instruction([&] { operation(q); }, [&] { return q.is_sound(least, most); }),
                      std::string(name) + " of " + std::to_string(before));
      EXPECT_EQ(q.queue.count(), change > 0 ? most : least);
    }
}

// ---- slices

namespace {

// How much more than now the process may map.
void limit_addresses(size_t more) {
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = more == SIZE_MAX ? limit.rlim_max : mapped_bytes() + more;
  setrlimit(RLIMIT_AS, &limit);
}

constexpr size_t kLongest = 10;  // slices that an operation takes or frees

// A pool that is sound hands out what it says is zero, and counts all but what is held or in somebody's hands.
bool is_sound(SlicePool& pool, size_t held) {
  limit_addresses(SIZE_MAX);
  pool.repair(0);
  if (!pool.is_valid()) return false;
  SlicePool::Gauges g = pool.gauges();
  size_t regions = divide_up(g.chunks * kChunk + g.space, kRegion);
  if (g.free_slices + held + regions * kMetaSlices < g.chunks * kSlicesInChunk) return false;
  std::vector<std::pair<Slice*, size_t>> runs;
  for (size_t length : {size_t{1}, size_t{6}, size_t{31}, kSlicesInChunk}) {
    SlicePool::Run run = pool.allocate(length, true);
    runs.emplace_back(run.first, length);
    for (size_t slice = 0; slice < length; ++slice) {
      char* start = run.first->base() + slice * kSlice;
      if (run.zeroed && !is_zero(start, kLine)) return false;
      *start = 1;
    }
  }
  if (!pool.is_valid()) return false;
  for (auto [first, length] : runs) pool.release(*first, length);
  pool.purge(SlicePool::Purge::kAll);
  return pool.is_valid();
}

struct Slices {
  SlicePool pool;
  Slice* run = take(4);
  Slices() {
    options.retain_bytes = 128 * kKiB;
    use_and_release(kLongest);
  }
  Slice* take(size_t slices) { return pool.allocate(slices, true).first; }
  void use_and_release(size_t slices) {
    Slice* first = take(slices);
    memset(first->base(), 1, slices * kSlice);
    pool.release(*first, slices);
  }
};

struct SliceCase {
  const char* name;
  void (*prepare)(Slices&);
  void (*operation)(Slices&);
  size_t held = 4;
  size_t stride = 1;
};
void PrintTo(const SliceCase& each, std::ostream* out) { *out << each.name; }

void nothing(Slices&) {}
void purge_all(Slices& s) { s.pool.purge(SlicePool::Purge::kAll); }
void leave_dirty_slices(Slices& s) {
  options.retain_bytes = SIZE_MAX / 2;
  s.use_and_release(kLongest);
}
void fill_a_region(Slices& s) {
  for (size_t i = 1; i < kChunksInRegion; ++i) s.take(kSlicesInChunk);
}
void empty_the_second_region(Slices& s) {
  constexpr size_t kQuarter = kSlicesInChunk / 4 + 1;
  std::vector<Slice*> quarters(kChunksInRegion), wholes(kChunksInRegion - 1);
  for (Slice*& first : quarters) first = s.take(kQuarter);
  for (Slice*& first : wholes) first = s.take(kSlicesInChunk);
  Slice* last = s.take(10);
  for (Slice* first : wholes) s.pool.release(*first, kSlicesInChunk);
  for (Slice* first : quarters) s.pool.release(*first, kQuarter);
  s.pool.release(*last, 10);
}

void close_two_chunks(Slices& s) {
  Slice* wholes[3];
  for (Slice*& first : wholes) first = s.take(kSlicesInChunk);
  s.pool.release(*wholes[0], kSlicesInChunk);
  s.pool.release(*wholes[2], kSlicesInChunk);
  purge_all(s);
}
// And the system would not give a whole region.
void unmap_two_chunks(Slices& s) {
  close_two_chunks(s);
  s.pool.unmap_closed();
  limit_addresses(2 * kChunk);
}

const SliceCase kSliceCases[] = {
    {"Allocate", nothing, [](Slices& s) { s.pool.allocate(3, false); }, 4 + 3},
    {"AllocateDirtyOnes", nothing, [](Slices& s) { s.pool.allocate(kLongest, false); }, 4 + kLongest},
    {"Release", nothing, [](Slices& s) { s.pool.release(*s.run, 4); }},
    {"Extend", nothing, [](Slices& s) { s.pool.extend(*s.run, 4, 6); }, 6},
    {"OpenASecondChunk", nothing, [](Slices& s) { s.take(kSlicesInChunk); }, 4 + kSlicesInChunk},
    {"OpenARegionsFirstChunk", fill_a_region, [](Slices& s) { s.take(kSlicesInChunk / 2); }, kChunksInRegion* kSlicesInChunk,
     7},
    {"Purge", leave_dirty_slices, purge_all},
    {"PurgeInTwoRounds", leave_dirty_slices,
     [](Slices& s) { s.pool.purge(SlicePool::Purge::kDue), s.pool.purge(SlicePool::Purge::kDue); }, 4, 3},
    {"PurgeThatClosesAChunk", [](Slices& s) { s.use_and_release(kSlicesInChunk); }, purge_all, 4, 5},
    {"UnmapClosedChunks", close_two_chunks, [](Slices& s) { s.pool.unmap_closed(); }, 4 + kSlicesInChunk},
    {"MapAChunkAgain", unmap_two_chunks, [](Slices& s) { s.take(kSlicesInChunk); }, 4 + 2 * kSlicesInChunk},
    {"UnmapARegion", empty_the_second_region, purge_all, 4, 31},
};

class ForkRepairOfSlices : public testing::TestWithParam<SliceCase> {};

}  // namespace

TEST_P(ForkRepairOfSlices, AtEveryInstruction) {
  const SliceCase& each = GetParam();
  Slices slices;
  each.prepare(slices);
  ASSERT_TRUE(slices.pool.is_valid());
  expect_all_good(fork_at_every_instruction([&] { each.operation(slices); },
                                            [&] { return is_sound(slices.pool, each.held); }, {.stride = each.stride}),
                  each.name);
  limit_addresses(SIZE_MAX);
  EXPECT_TRUE(slices.pool.is_valid());
}

INSTANTIATE_TEST_SUITE_P(All, ForkRepairOfSlices, testing::ValuesIn(kSliceCases),
                         [](const auto& test) { return test.param.name; });

// ---- heaps, and everything together

namespace {

size_t heaps_in_use() {
  size_t n = 0;
  registry.for_each([&](ThreadHeap& heap) { n += !heap.shelf.stranded; });
  return n;
}

void leave_dead_heaps(unsigned n) {
  std::barrier all_have_one(n);
  on_threads(n, [&](unsigned) {
    free_all(allocate_many(50, 100));
    all_have_one.arrive_and_wait();
  });
}

class AttachedThread {
 public:
  AttachedThread() { attached_.wait(false); }
  ~AttachedThread() {
    done_ = true;
    done_.notify_one();
  }

 private:
  std::atomic<bool> attached_{false}, done_{false};
  std::jthread thread_{[this] {
    registry.attach();
    attached_ = true;
    attached_.notify_one();
    done_.wait(false);
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
    bool published = false;
    auto look = [&] {
      published = published || (have_heap() && !my_thread_heap().live);
      return false;
    };
    void* local = hm_local_alloc(100);
    fork_at_every_instruction([] { registry.part(); }, allocator_works, {.worth_a_fork = look});
    EXPECT_FALSE(published) << "before the thread has let go of it (R2)";
    hm_local_free(local);
    hm_free(hm_malloc(100));
    hm_local_free(hm_local_alloc(100));
    expect_all_good(fork_at_every_instruction([] { registry.part(); }, allocator_works, {.stride = 17}), "part");
  });
  on_thread([] {
    while (registry.attach() != nullptr && heaps_in_use() < 4) set_my_heap(nullptr);  // or it has one already
    set_my_heap(nullptr);
    expect_all_good(fork_at_every_instruction([] { registry.attach(); }, allocator_works, {.stride = 31}), "create");
  });
}

// Of the heaps that are being drained one at most is lost.
TEST(ForkRepair, DeadHeapsAreDrainedAtEveryInstruction) {
  leave_dead_heaps(3);
  expect_all_good(fork_at_every_instruction([] { registry.drain_dead(Registry::Drain::kAll); },
                                            [] { return allocator_works() && heaps_in_use() >= 2; }, {.stride = 61}),
                  "drain");
}

TEST(ForkRepair, TheFallbackAtEveryInstruction) {
  leave_dead_heaps(1);
  auto use = [] { registry.with_fallback([](ThreadHeap& heap) { return heap.refill(class_of(500)); }); };
  auto goes_on = [use] { return allocator_works() && (use(), everything_is_valid()); };
  expect_all_good(fork_at_every_instruction(use, goes_on, {.stride = 17}), "fallback");
}

TEST(ForkRepair, BlocksOfAllKindsAtEveryInstruction) {
  auto work = [] {
    for (size_t size : {20u, 3000u, 20000u, 60000u, 700000u}) hm_free(hm_malloc(size));
    hm_local_free(hm_local_alloc(200));
  };
  expect_all_good(fork_at_every_instruction(work, allocator_works, {.stride = 23}), "first use");
  expect_all_good(fork_at_every_instruction([] { hm_collect(); }, allocator_works, {.stride = 197}), "collect");
}

// It loses slices at worst: none is free that the run still counts as its own.
TEST(ForkRepair, ARunThatShrinksAtEveryInstruction) {
  char* block = static_cast<char*>(hm_malloc(20 * kSlice));
  void* shrunk = nullptr;
  auto keeps_its_own = [block] {
    char* end = block + hm_usable_size(block);
    auto others = allocate_many(200, 2 * kSlice);
    return std::ranges::none_of(others, [=](void* other) { return block <= other && other < end; }) && allocator_works();
  };
  expect_all_good(fork_at_every_instruction([&] { shrunk = hm_realloc(block, 2 * kSlice); }, keeps_its_own, {.stride = 3}),
                  "shrink");
  EXPECT_EQ(shrunk, block);
  EXPECT_EQ(hm_usable_size(block), 2 * kSlice);
  hm_free(block);
}

TEST(ForkRepair, HolesGoBackAtEveryInstruction) {
  auto blocks = allocate_many(300, 1000);
  std::vector<void*> kept;
  for (size_t i = 0; i < blocks.size(); i += 10) kept.push_back(std::exchange(blocks[i], nullptr));
  for (void* block : kept) fill(block, 1000, 1);
  free_all(blocks);
  my_thread_heap().release_all();
  auto check = [&] {
    bool unchanged = std::ranges::all_of(kept, [](void* block) { return matches(block, 1000, 1); });
    hole_passes.whole();
    return unchanged && allocator_works();
  };
  expect_all_good(fork_at_every_instruction([] { hole_passes.whole(); }, check, {.stride = 97}), "holes");
}

#endif

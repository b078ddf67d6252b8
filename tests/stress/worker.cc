#include "worker.h"

#include <hmalloc/hmalloc.h>
#include <pthread.h>
#include <unistd.h>

#include "naps.h"
#include "threads/claims.h"

namespace stress {

Table table;
std::atomic<bool> done{false};

namespace {

void be_late(uint64_t rounds);

bool my_heap_is_valid() {
  if (!hm::have_heap()) return true;
  hm::HeapUse use(hm::my_thread_heap());
  return hm::my_heap()->is_valid();
}

class Worker {
 public:
  Worker(const Plan& plan, uint64_t life)
      : plan_(plan), random_(seed * 1000003 + life), held_(32 + random_() % 400), burst_(300) {}

  void step() {
    Block*& mine = held_[random_() % held_.size()];
    uint64_t dice = random_() % 16;
    if (dice < 3) {
      mine = table.exchange(random_(), mine);
      if (mine != nullptr) check(mine);
    } else if (dice == 3) {
      if (mine != nullptr) mine = resize(mine, random_size(mine->kind, random_), random_);
    } else if (dice == 4) {
      burst();
    } else {
      drop(mine);
      if (dice > 9) mine = fresh();
    }
  }

  // Rare operations, which look at everybody's memory.
  void step_aside() {
    uint64_t dice = random_() % 8;
    if (dice == 0) hm_collect();
    if (dice == 1 || dice == 2) look_at_stats();
    if (dice == 4) hm_thread_idle();
    if (dice == 3 && !my_heap_is_valid()) fail("this thread's heap is not valid");
  }

  // To the table first: a thread's blocks outlive it.
  void leave() {
    for (Block*& mine : held_) {
      if (random_() % 4 != 0) mine = table.exchange(random_(), mine);
      drop(mine);
    }
  }

  uint64_t operations() { return 2000 + random_() % 60000; }

 private:
  Block* fresh() {
    Kind kind = plan_.kinds[random_() % plan_.kinds.size()];
    return allocate(kind, random_size(kind, random_), random_);
  }
  void drop(Block*& block) {
    if (block != nullptr) release(block, random_);
    block = nullptr;
  }
  // Many blocks of one size at once, freed in order: caches overflow and superblocks run empty.
  void burst() {
    Kind kind = plan_.kinds[random_() % plan_.kinds.size()];
    size_t size = random_size(kind, random_), n = kind == kLarge ? 3 : random_() % burst_.size();
    for (size_t i = 0; i < n; ++i) burst_[i] = allocate(kind, size, random_);
    for (size_t i = 0; i < n; ++i) {
      if (random_() % 8 == 0) burst_[i] = table.exchange(random_(), burst_[i]);
      drop(burst_[i]);
    }
  }
  static void look_at_stats() {
    hm_stats stats;
    hm_stats_get(&stats);
    if (stats.live_heaps > stats.heaps) fail("statistics make no sense");
  }

  const Plan& plan_;
  Random random_;
  std::vector<Block*> held_, burst_;
};

// Runs among the destructors of thread-specific data, and sets its value again as often as the block says: some of
// these rounds come after the thread's heap is gone.
void late(void* pointer) {
  auto* block = static_cast<uint64_t*>(pointer);
  uint64_t rounds = *block;
  hm_free(block);
  Random random(reinterpret_cast<uintptr_t>(block));
  release(allocate(kGeneral, random_size(kGeneral, random), random), random);
  release(allocate(kLocal, random_size(kLocal, random), random), random);
  if (rounds > 0) be_late(rounds - 1);
}

pthread_key_t late_key() {
  static const pthread_key_t key = [] {
    pthread_key_t made;
    pthread_key_create(&made, late);
    return made;
  }();
  return key;
}

void be_late(uint64_t rounds) {
  auto* block = static_cast<uint64_t*>(hm_malloc(100));
  *block = rounds;
  pthread_setspecific(late_key(), block);
}

}  // namespace

void live(const Plan& plan, uint64_t life) {
  if (life % 3 == 0) be_late(2);
  Worker worker(plan, life);
  Naps naps(plan.naps);
  Random random(life);
  uint64_t operations = worker.operations();
  for (uint64_t i = 0; i < operations && !done.load(std::memory_order_relaxed); ++i) {
    worker.step();
    if (i % 512 == 0) worker.step_aside();
    if (i % 256 == 0) naps.between_bursts(random);
  }
  worker.leave();
  if (!my_heap_is_valid()) fail("an ending thread's heap is not valid");
}

pid_t fork_and_live(const Plan& plan, uint64_t life) {
  Worker worker(plan, life);  // before the fork: the process's own malloc may not survive it under a sanitizer
  pid_t child = fork();
  if (child != 0) return child;
  alarm(120);
  for (int i = 0; i < 3000; ++i) worker.step();
  hm_collect();
  worker.leave();
  if (!my_heap_is_valid()) fail("the child's heap is not valid");
  _exit(0);
}

}  // namespace stress

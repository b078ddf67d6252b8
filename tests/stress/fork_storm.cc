// hm_fork_storm [--runs N] [--forks N] [--patience S]: threads that allocate and free blocks of every kind while others fork
// in every way there is.  Each child examines what it finds, frees blocks of threads that it does not have, allocates, forks
// again, and ends; a child that hangs dies by its alarm.  A run is a process of its own.
#include <hmalloc/hmalloc.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "system.h"
#include "verdict.h"
#include "worker.h"

using namespace stress;

namespace {

constexpr unsigned kWorkers = 4, kForkers = 3;
unsigned patience = 60;  // seconds that a child has
constexpr Kind kEvery[] = {kGeneral, kShared, kLocal, kLarge};

// A thread that holds few blocks and passes most of them on.
void work(uint64_t life, const std::atomic<bool>& stop) {
  Random random(seed * 7919 + life);
  for (uint64_t i = 0; !stop.load(std::memory_order_relaxed); ++i) {
    Kind kind = kEvery[random() % 4];
    Block* block = allocate(kind, random_size(kind, random), random);
    if (Block* other = table.exchange(random() % 64, block)) release(other, random);
    if (i % 1024 == 0) hm_collect();
  }
}

// No other library is called here: its locks may be held for ever where no handlers ran.
void use_every_kind(Random& random) {
  for (Kind kind : kEvery)
    for (int i = 0; i < 40; ++i) {
      Block* block = allocate(kind, random_size(kind, random), random);
      check(block);
      release(block, random);
    }
}

pid_t fork_by_system_call() { return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr)); }

struct Way {
  pid_t (*fork)();
  bool complete;  // the C library is whole in the child: it may start threads
};
// What this system can do, found out before there are threads.
std::vector<Way> ways{{fork, true}};

void find_ways() {
  using namespace hm::test;
  if (kEmptiesPages.holds()) ways.insert(ways.end(), {{_Fork, false}, {fork_by_system_call, false}});
  else printf("fork storm: by fork alone, for %s\n", kEmptiesPages.missing);
  ways[0].complete = kStartsThreadsInChildren.holds();
  if (!ways[0].complete) printf("fork storm: without threads in children, for %s\n", kStartsThreadsInChildren.missing);
}

[[noreturn]] void live_as_child(uint64_t life, bool complete, int generations) {
  alarm(patience);
  Random random(life);
  examine_everything();
  for (size_t slot = 0; slot < 64; ++slot)
    if (Block* block = table.exchange(slot, nullptr)) release(block, random);
  use_every_kind(random);
  if (complete) {
    std::atomic<bool> stop{false};
    std::thread other(work, life, std::cref(stop));
    use_every_kind(random);
    stop.store(true);
    other.join();
  }
  if (generations > 0) {
    bool handlers_may_run = complete || ways.size() == 1;
    size_t way = handlers_may_run ? life % ways.size() : 1 + life % 2;
#if !defined(__GLIBC__)
    if (!handlers_may_run) way = 2;  // musl's _Fork takes a lock, which a child by system call may have found taken
#endif
    pid_t child = ways[way].fork();
    if (child == 0) live_as_child(life + 1, false, generations - 1);
    require_good_end(child, "a grandchild");
  }
  hm_collect();
  examine_everything();
  _exit(0);
}

void fork_often(unsigned line, unsigned forks) {
  hm_free(hm_malloc(1));
  for (unsigned i = 0; i < forks; ++i) {
    Way way = ways[(line + i) % ways.size()];
    pid_t child = way.fork();
    if (child == 0) live_as_child(line * 100 + i, way.complete, 1);
    require_good_end(child, "a child");
  }
}

void run_once(unsigned forks) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> workers, forkers;
  for (unsigned i = 0; i < kWorkers; ++i) workers.emplace_back(work, i, std::cref(stop));
  for (unsigned i = 0; i < kForkers; ++i) forkers.emplace_back(fork_often, i, forks);
  for (std::thread& thread : forkers) thread.join();
  stop.store(true);
  for (std::thread& thread : workers) thread.join();
  examine_everything();
}

unsigned number_after(const char* name, int count, char** arguments, unsigned otherwise) {
  for (int i = 1; i + 1 < count; ++i)
    if (strcmp(arguments[i], name) == 0) return static_cast<unsigned>(atoi(arguments[i + 1]));
  return otherwise;
}

}  // namespace

int main(int count, char** arguments) {
  unsigned runs = number_after("--runs", count, arguments, 2), forks = number_after("--forks", count, arguments, 20);
  patience = number_after("--patience", count, arguments, patience);
  find_ways();
  fflush(stdout);
  for (unsigned run = 0; run < runs; ++run) {
    pid_t child = fork();
    if (child == 0) {
      alarm(10 * patience);
      seed = run + 1;
      run_once(forks);
      _exit(0);
    }
    require_good_end(child, "a run");
  }
  printf("fork storm: ok, %u runs\n", runs);
}

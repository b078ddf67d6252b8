// baseline_stress_NAME [SECONDS [SEED]]: random work on one baseline, in rounds.  In each round threads come and go and
// children are forked; between two rounds nobody runs, and every structure examines itself.  At the end all blocks are
// freed, and the baseline's account must say so.
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include "stress_blocks.h"

using namespace stress;

namespace {

// What the sanitizers' own run-times do not survive: a fork beside threads, and a thread in the child of such a fork.
#if defined(__SANITIZE_THREAD__)
constexpr bool kMayFork = false, kThreadsInChild = false;
#elif defined(__SANITIZE_ADDRESS__)
constexpr bool kMayFork = true, kThreadsInChild = false;
#else
constexpr bool kMayFork = true, kThreadsInChild = true;
#endif

// HMalloc as published keeps no account of its live blocks.
constexpr bool kCountsBlocks = std::string_view(HM_LIBRARY_NAME) != "hmalloc_paper";

std::atomic<bool> done{false};

// The blocks that a thread holds, and what it does to them.
class Life {
 public:
  explicit Life(uint32_t number) : number_(number), random_(seed * 7919 + number) {}

  void step() {
    Block*& mine = held_[random_() % held_.size()];
    uint64_t dice = random_() % 64;
    if (dice < 14) mine = exchange(random_(), mine);
    else if (dice < 34) release(mine);
    else if (dice == 63) burst();
    else if (mine == nullptr) mine = allocate(random_size(random_), number_, random_);
    else if (dice < 40) mine = resize(mine, random_size(random_), number_);
    else check(mine);
  }
  // Most of what is left goes to the table: a thread's blocks outlive it.
  void leave() {
    for (Block*& mine : held_) {
      if (!random_.one_in(4)) mine = exchange(random_(), mine);
      release(mine);
    }
  }
  uint64_t length() { return 100 + random_() % 3000; }

 private:
  // Many blocks of one size at once, freed in their order: caches overflow, superblocks and arenas run empty.
  void burst() {
    std::array<Block*, 300> burst;
    size_t size = random_size(random_), count = size > 16384 ? 4 : random_() % burst.size();
    for (size_t i = 0; i < count; ++i) burst[i] = allocate(size, number_, random_);
    for (size_t i = 0; i < count; ++i) {
      if (random_.one_in(8)) burst[i] = exchange(random_(), burst[i]);
      release(burst[i]);
    }
  }

  uint32_t number_;
  Random random_;
  std::array<Block*, 200> held_{};
};

// Keys whose destructor allocates, frees and comes again, as often as destructors are run.  One is made before the
// baseline makes its own and one after: destructors run in the order of their keys.
pthread_key_t late_keys[2];

template <int kWhich>
void late(void* pointer) {
  auto* block = static_cast<Block*>(pointer);
  uint32_t rounds = block->owner;  // that are to follow
  Random random(reinterpret_cast<uintptr_t>(block));
  release(block);
  Block* other = exchange(random(), resize(allocate(random_size(random), 0, random), random_size(random), 0));
  release(other);
  if (rounds > 0) pthread_setspecific(late_keys[kWhich], allocate(100, rounds - 1, random));
}

template <int kWhich>
void make_late_key() {
  if (pthread_key_create(&late_keys[kWhich], late<kWhich>) != 0) fail("no key");
}

void live(uint32_t number) {
  Life life(number);
  Random random(number);
  if (number % 3 == 0) pthread_setspecific(late_keys[number % 2], allocate(100, 2, random));
  uint64_t length = life.length();
  for (uint64_t i = 0; i < length && !done.load(std::memory_order_relaxed); ++i) {
    life.step();
    if (i % 1024 == 0 && hm::usage().mapped == 0) fail("nothing is mapped");
  }
  life.leave();
}

// The child has the blocks of all threads and the threads of none.  It works on, starts a thread of its own, and ends.
[[noreturn]] void live_in_child(Life& life) {
  alarm(120);
  done = false;
  for (int i = 0; i < 2000; ++i) life.step();
  if (kThreadsInChild) std::thread(live, 1'000'000).join();
  life.leave();
  empty_table();
  _exit(0);
}

void fork_and_wait(uint32_t number) {
  Life life(number);
  for (int i = 0; i < 300; ++i) life.step();
  pid_t child = fork();
  if (child == 0) live_in_child(life);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) fail("the child of a fork failed");
  life.leave();
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

std::atomic<uint32_t> born{1};

void round_of(double seconds) {
  done = false;
  std::vector<std::thread> lines;  // of threads one after the other, each with blocks of those before it
  for (int i = 0; i < 4; ++i)
    lines.emplace_back([] {
      while (!done) std::thread(live, born.fetch_add(1)).join();
    });
  if (kMayFork)
    lines.emplace_back([] {
      while (!done) fork_and_wait(born.fetch_add(1));
    });
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  done = true;
  for (std::thread& line : lines) line.join();
  if (!hm::baseline::is_valid()) fail("the structures are not valid");
}

}  // namespace

int main(int count, char** arguments) {
  double seconds = count > 1 ? atof(arguments[1]) : 3;
  if (count > 2) seed = strtoull(arguments[2], nullptr, 0);
  signal(SIGALRM, [](int) { fail("hangs"); });
  alarm(static_cast<unsigned>(seconds) * 4 + 300);

  make_late_key<0>();
  hm::deallocate(hm::allocate(1), "stress");  // before start(): the loader allocates too
  hm::baseline::start();
  make_late_key<1>();
  pthread_atfork(hm::baseline::before_fork, hm::baseline::after_fork_in_parent, hm::baseline::after_fork_in_child);

  constexpr int kRounds = 6;
  for (int i = 0; i < kRounds; ++i) round_of(seconds / kRounds);
  empty_table();
  if (!hm::baseline::is_valid()) fail("the structures are not valid at the end");
  hm::Usage usage = hm::usage();
  if (kCountsBlocks && usage.allocated != 0) fail("the program has no block, the account says it has");
  printf("%s stress: ok, seed %llu, %u threads, %zu KB mapped\n", HM_LIBRARY_NAME, static_cast<unsigned long long>(seed),
         born.load(), usage.mapped / 1024);
}

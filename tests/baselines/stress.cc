// baseline_stress_NAME [--seconds S] [--threads N] [--seed X] [--no-forks]: random work on one baseline, in rounds.  In
// each round threads come and go and children are forked; between two rounds nobody runs, and every structure examines
// itself.  At the end all blocks are freed, and the baseline's account must say so.
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "stress_life.h"

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

struct Plan {
  double seconds = 3;
  unsigned threads = 4;
  bool forks = kMayFork;
};

Plan parse(int count, char** arguments) {
  Plan plan;
  for (int i = 1; i < count; ++i) {
    std::string name = arguments[i];
    if (name == "--no-forks") {
      plan.forks = false;
      continue;
    }
    if (i + 1 == count) fail("an option without a value");
    const char* text = arguments[++i];
    if (name == "--seconds") plan.seconds = atof(text);
    else if (name == "--threads") plan.threads = static_cast<unsigned>(atoi(text));
    else if (name == "--seed") seed = strtoull(text, nullptr, 0);
    else fail("unknown option");
  }
  return plan;
}

std::atomic<uint32_t> born{1};

// Threads one after the other, each with blocks of those before it.
void line_of_threads() {
  while (!done.load(std::memory_order_relaxed)) std::thread(live, born.fetch_add(1)).join();
}

// The child has the blocks of all threads and the threads of none.  It works on, starts a thread of its own, and ends.
[[noreturn]] void live_in_child(Life& life) {
  alarm(30);
  done = false;
  for (int i = 0; i < 2000; ++i) life.step();
  if (kThreadsInChild) std::thread(live, 1'000'000).join();
  life.leave();
  table.empty();
  empty_parcels();
  _exit(0);
}

void fork_and_wait(uint32_t number) {
  Life life(number);
  for (int i = 0; i < 300; ++i) life.step();
  pid_t child = fork();
  if (child == 0) live_in_child(life);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) fail("no child");
  if (status != 0) fail("the child of a fork failed");
  life.leave();
}

void line_of_forks() {
  while (!done.load(std::memory_order_relaxed)) {
    fork_and_wait(born.fetch_add(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void round_of(const Plan& plan, double seconds) {
  done = false;
  std::vector<std::thread> lines;
  for (unsigned i = 0; i < plan.threads; ++i) lines.emplace_back(line_of_threads);
  if (plan.forks) lines.emplace_back(line_of_forks);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  done = true;
  for (std::thread& line : lines) line.join();
  if (!hm::baseline::is_valid()) fail("the structures are not valid");
}

void begin() {
  make_key(kEarlyKey);
  hm::deallocate(hm::allocate(1), "stress");  // before start(): the loader allocates too
  hm::baseline::start();
  make_key(kLateKey);
  pthread_atfork(hm::baseline::before_fork, hm::baseline::after_fork_in_parent, hm::baseline::after_fork_in_child);
  signal(SIGALRM, [](int) { fail("hangs"); });
}

}  // namespace

int main(int count, char** arguments) {
  Plan plan = parse(count, arguments);
  alarm(static_cast<unsigned>(plan.seconds) * 4 + 60);
  begin();
  constexpr int kRounds = 6;
  for (int i = 0; i < kRounds; ++i) round_of(plan, plan.seconds / kRounds);
  table.empty();
  empty_parcels();
  if (!hm::baseline::is_valid()) fail("the structures are not valid at the end");
  hm::Usage usage = hm::usage();
  if (kCountsBlocks && usage.allocated != 0) {
    fprintf(stderr, "%zu bytes are said to be the program's, which has none\n", usage.allocated);
    fail("blocks are lost");
  }
  printf("%s stress: ok, seed %llu, %u threads, %zu KB mapped\n", HM_LIBRARY_NAME, static_cast<unsigned long long>(seed),
         born.load(), usage.mapped / 1024);
}

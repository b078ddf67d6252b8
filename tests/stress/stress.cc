// hm_stress [--seconds S] [--threads N] [--seed X] [--kinds general,shared,local,large] [--naps]
#include <hmalloc/hmalloc.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <thread>

#include "naps.h"
#include "verdict.h"
#include "worker.h"

using namespace stress;

namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool kMayFork = false;  // ThreadSanitizer's run-time does not survive a fork beside threads
#else
constexpr bool kMayFork = true;
#endif

std::vector<Kind> parse_kinds(const char* text) {
  constexpr std::array<std::string_view, kKinds> kNames = {"general", "shared", "local", "large"};
  std::vector<Kind> kinds;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    auto name = std::find(kNames.begin(), kNames.end(), word);
    if (name == kNames.end()) fail("unknown kind");
    kinds.push_back(static_cast<Kind>(name - kNames.begin()));
  }
  return kinds;
}

Plan parse(int count, char** arguments) {
  Plan plan;
  plan.forks = kMayFork;
  for (int i = 1; i < count; ++i) {
    std::string name = arguments[i];
    if (name == "--naps") {
      plan.naps = true;
      continue;
    }
    if (++i == count) fail("an option without a value");
    const char* text = arguments[i];
    if (name == "--seconds") plan.seconds = atof(text);
    else if (name == "--threads") plan.threads = static_cast<unsigned>(atoi(text));
    else if (name == "--seed") seed = strtoull(text, nullptr, 0);
    else if (name == "--kinds") plan.kinds = parse_kinds(text);
    else fail("unknown option");
  }
  return plan;
}

// Short lives, one after the other: each inherits what the last one left.
void succession(const Plan& plan, unsigned line) {
  for (uint64_t life = line; !done.load(std::memory_order_relaxed); life += plan.threads)
    std::thread(live, std::cref(plan), life).join();
}

void forks(const Plan& plan) {
  hm_free(hm_malloc(1));
  for (uint64_t life = 1'000'000; plan.forks && !done.load(std::memory_order_relaxed); ++life) {
    pid_t child = fork_and_live(plan, life);
    if (child > 0) require_good_end(child, "the child of a fork");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void empty_table() {
  Random random(seed);
  for (size_t slot = 0; slot < Table::kSlots; ++slot)
    if (Block* block = table.exchange(slot, nullptr)) release(block, random);
}

void hanging(int) { fail("the program hangs"); }

}  // namespace

int main(int count, char** arguments) {
  Plan plan = parse(count, arguments);
  signal(SIGALRM, hanging);
  alarm(static_cast<unsigned>(plan.seconds) + 240);
  std::vector<std::thread> threads;
  for (unsigned line = 0; line < plan.threads; ++line) threads.emplace_back(succession, std::cref(plan), line);
  std::thread forker(forks, std::cref(plan));
  for (unsigned i = 0; plan.naps && i < 2; ++i) threads.emplace_back(collect_until_done);
  std::this_thread::sleep_for(std::chrono::duration<double>(plan.seconds));
  done.store(true);
  for (std::thread& thread : threads) thread.join();
  forker.join();
  examine_everything();
  empty_table();
  expect_nothing_held();
  examine_everything();
  hm_stats stats;
  hm_stats_get(&stats);
  printf("stress: ok, seed %llu, %u heaps, %llu refills, %llu cross-thread frees, %llu OS calls\n",
         static_cast<unsigned long long>(seed), stats.heaps, static_cast<unsigned long long>(stats.refills),
         static_cast<unsigned long long>(stats.cross_thread_frees), static_cast<unsigned long long>(stats.os_calls));
}

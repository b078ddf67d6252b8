// cores: what an allocator's data structures cost where there are many cores, in lines that move between their caches.
//
//   cores [--pattern own] [--threads 2] [--operations 2048] [--grain 16]
//
// Meant for the simulator: ./hmalloc bench cores, lab/native/cores.  One thread runs at a time, `grain` operations in a turn,
// the threads in turn; the calls of malloc and free are marked.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "arguments.h"
#include "core_patterns.h"
#include "report.h"
#include "turns.h"

namespace {

using namespace bench;

template <class Of>
std::unique_ptr<Pattern> pattern(const Setting& setting) {
  return std::make_unique<Of>(setting);
}

std::unique_ptr<Pattern> chosen(const std::string& name, const Setting& setting) {
  if (name == "own") return pattern<Own>(setting);
  if (name == "ring") return pattern<Ring>(setting);
  if (name == "random") return pattern<AtRandom>(setting);
  if (name == "exchange") return pattern<Exchange>(setting);
  if (name == "producer-consumer") return pattern<ProducerConsumer>(setting);
  if (name == "larson") return pattern<Larson>(setting);
  if (name == "threadtest") return pattern<Threadtest>(setting);
  if (name == "linux-scalability") return pattern<LinuxScalability>(setting);
  // Events with their headers, and how many of 10,000 leave their thread on so many, as the engine itself reports
  // (docs/results/figures-12-14.md).
  using To = Simulation::To;
  if (name == "pcs") return std::make_unique<Simulation>(setting, 40, 3 * setting.cores, To::next);
  if (name == "airport") return std::make_unique<Simulation>(setting, 24, std::min(2575U, 75 * setting.cores), To::next);
  const auto remote = static_cast<unsigned>(std::stoul(name.substr(name.find('-') + 1)));  // phold-N, per cent
  return std::make_unique<Simulation>(setting, 16, 100 * remote, To::any);
}

void play(Pattern& pattern, unsigned count) {
  std::vector<std::unique_ptr<Core<Pattern>>> cores;
  for (unsigned i = 0; i < count; ++i) {
    cores.push_back(std::make_unique<Core<Pattern>>(i, pattern));
    cores.back()->start();
  }
  unsigned rounds = pattern.warm_up() + pattern.rounds();
  for (unsigned round = 0; round < rounds; ++round) {
    if (round == pattern.warm_up()) ::cores::say(::cores::Say::begin_counting);
    for (unsigned i = 0; i < count; ++i) {
      // The lives of the cores' threads end at different rounds.
      bool ends = pattern.life() != 0 && (round + i) % pattern.life() == pattern.life() - 1;
      if (ends) {
        cores[i]->last_turn();
        cores[i]->start();
      } else {
        cores[i]->turn();
      }
    }
  }
  ::cores::say(::cores::Say::end_counting);
  for (auto& core : cores) core->last_turn();
}

}  // namespace

int main(int count, char** values) {
  Arguments arguments(count, values);
  std::string name = arguments.choice(
      "pattern", {"own", "ring", "random", "exchange", "producer-consumer", "larson", "threadtest", "linux-scalability",
                  "phold-0", "phold-25", "phold-50", "phold-75", "phold-100", "pcs", "airport"});
  unsigned threads = arguments.count("threads", 2, 1, 64);
  unsigned grain = arguments.count("grain", 16, 1, 128);
  Setting setting{threads, grain, arguments.count("operations", 2048, grain)};
  arguments.finish();
  std::unique_ptr<Pattern> of = chosen(name, setting);
  play(*of, threads);
  std::printf("{\"workload\":\"cores\",\"threads\":%u,\"ops\":%.0f,\"malloc_library\":\"%s\"}\n", threads, of->operations(),
              malloc_library());
  return 0;
}

// baseline_blowup_NAME [pattern]: A/U of one baseline (Hoard, definition 1) over the rounds of each pattern, and whether
// it is what blowup_expected.h says.  A is what is mapped, U the most that was live.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "blowup_expected.h"
#include "blowup_patterns.h"
#include "override/allocator.h"

using namespace blowup;

namespace {

struct Measured {
  size_t live, quarters[4];
  // Grows: the second half of the rounds brought more than half of what the first had brought.
  Course course() const { return quarters[3] - quarters[1] > quarters[1] / 2 ? kGrows : kSteady; }
  double ratio() const { return static_cast<double>(quarters[3]) / static_cast<double>(live); }
};

Measured run(const Pattern& pattern) {
  Crew crew;
  Live live, kept;
  Measured measured{};
  size_t before = hm::usage().mapped;
  for (size_t round = 0; round < kRounds; ++round) {
    pattern.round(round, crew, live, kept);
    measured.quarters[round * 4 / kRounds] = hm::usage().mapped - before;
  }
  measured.live = live.most() + kept.most();
  crew.on(0, [&] {
    live.free_all();
    kept.free_all();
  });
  return measured;
}

const Expected* expected_of(std::string_view pattern) {
  std::string_view name = HM_LIBRARY_NAME;
  const Expected* found = nullptr;
  for (const Expected& row : kExpected)
    if (row.pattern == pattern && name.starts_with(row.baseline))
      if (found == nullptr || strlen(row.baseline) > strlen(found->baseline)) found = &row;
  return found;
}

bool judge(const Pattern& pattern, const Measured& measured) {
  printf("%-17s A/U", pattern.name);
  for (size_t mapped : measured.quarters) printf(" %6.2f", static_cast<double>(mapped) / static_cast<double>(measured.live));
  printf("  %-7s", measured.course() == kGrows ? "grows" : "steady");
  const Expected* expected = expected_of(pattern.name);
  if (expected == nullptr) return printf("NOT EXPECTED: no line in the table\n"), false;
  bool as_expected =
      expected->course == measured.course() && measured.ratio() >= expected->least && measured.ratio() <= expected->most;
  printf("%s: %s", as_expected ? "as expected" : "NOT EXPECTED", expected->why);
  if (!as_expected)
    printf(" (%s, %.1f to %.1f)", expected->course == kGrows ? "grows" : "steady", expected->least, expected->most);
  printf("\n");
  return as_expected;
}

// A process for each pattern: what one leaves would serve the next.
bool run_apart(const Pattern& pattern) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    bool good = judge(pattern, run(pattern));
    fflush(stdout);
    _exit(good ? 0 : 1);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace

int main(int count, char** arguments) {
  // The same on every machine: as many heaps and arenas as threads.
  setenv("HOARD_HEAPS", "16", 1);
  setenv("AR_MALLOC_ARENAS", "16", 1);
  hm::baseline::start();
  printf("%s, %zu rounds, %zu threads, %zu KB live\n", HM_LIBRARY_NAME, kRounds, kThreads, kLive / 1024);
  bool good = true;
  for (const Pattern& pattern : kPatterns)
    if (count < 2 || strcmp(arguments[1], pattern.name) == 0) good = run_apart(pattern) && good;
  return good ? 0 : 1;
}

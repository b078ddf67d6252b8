/* With HMALLOC_BACKGROUND=1: the thread starts however much thread-local storage the program has, and what is freed goes back
 * though the program makes no calls, also if nothing went back for long before that. */
#include "case.h"

#include <dirent.h>

enum { kBlocks = 40, kLoadMs = 1500, kLongestMs = 60000 };
static const size_t kSizes[] = {60000, 500000, 4 << 20};
static const long kMostMb = 12;

static __thread char much[400 << 10]; /* more than the stack that the thread asks for at first */

static long now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int threads(void) {
  int found = 0;
  DIR* tasks = opendir("/proc/self/task");
  for (struct dirent* each; (each = readdir(tasks)) != NULL;) found += each->d_name[0] != '.';
  closedir(tasks);
  return found;
}

static long resident_mb(void) { return (long)(resident_bytes() / MIB); }

static void load(size_t size) {
  void* blocks[kBlocks];
  for (long end = now_ms() + kLoadMs; now_ms() < end; usleep(3000)) {
    for (int i = 0; i < kBlocks; ++i) memset(blocks[i] = malloc(size), 1, size);
    for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
  }
}

int main(void) {
  much[1] = 1;
  REQUIRE(threads() == 2);
  long before = resident_mb();
  for (size_t i = 0; i < sizeof kSizes / sizeof *kSizes; ++i) {
    load(kSizes[i]);
    long end = now_ms() + kLongestMs;
    while (resident_mb() > before + kMostMb && now_ms() < end) usleep(20000);
    printf("%zu bytes: %ld MB stay\n", kSizes[i], resident_mb() - before);
    REQUIRE(resident_mb() <= before + kMostMb);
  }
  return much[1] - 1;
}

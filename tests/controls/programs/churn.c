/* A workload: blocks of 100 to 1000 bytes, replaced at random.  Prints the CPU time that it took, and its peak of memory. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kLive = 20000, kReplacements = 600000 };
static char* live[kLive];

static long peak_kb(void) {
  char line[256];
  long kb = 0;
  FILE* file = fopen("/proc/self/status", "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL)
    if (sscanf(line, "VmHWM: %ld", &kb) == 1) break;
  return kb;
}

int main(void) {
  uint64_t state = 88172645463325252u;
  for (int i = 0; i < kReplacements; i++) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    char** slot = &live[state % kLive];
    size_t size = 100 + (state >> 32) % 900;
    free(*slot);
    *slot = malloc(size);
    if (*slot == NULL) return 1;
    memset(*slot, 1, size);
  }
  struct timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  printf("%lld %ld\n", (long long)used.tv_sec * 1000000000 + used.tv_nsec, peak_kb());
  return 0;
}

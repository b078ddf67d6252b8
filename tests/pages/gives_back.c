// Some 300 MB of small blocks of three classes, all freed: however large a page is, the memory goes back.  The classes
// are freed one after the other in strides, so that free slices come and go singly.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kClasses = 3, kBytesEach = 100 << 20, kMax = kBytesEach / 512, kStride = 7 };
static const size_t sizes[kClasses] = {512, 1024, 2048};
static void* blocks[kClasses][kMax];

static double resident_mb(void) {
  FILE* file = fopen("/proc/self/status", "r");
  char line[256];
  long kilobytes = 0;
  while (file != NULL && fgets(line, sizeof line, file) != NULL)
    if (sscanf(line, "VmRSS: %ld", &kilobytes) == 1) break;
  if (file != NULL) fclose(file);
  return (double)kilobytes / 1024;
}

int main(void) {
  memset(blocks, 1, sizeof blocks);
  double start = resident_mb();
  for (int c = 0; c < kClasses; ++c)
    for (size_t i = 0; i < kBytesEach / sizes[c]; ++i) memset(blocks[c][i] = malloc(sizes[c]), 1, sizes[c]);
  double most = resident_mb();
  for (int c = 0; c < kClasses; ++c)
    for (size_t first = 0; first < kStride; ++first)
      for (size_t i = first; i < kBytesEach / sizes[c]; i += kStride) free(blocks[c][i]);
  double left = 0;
  for (int tenth = 0; tenth < 600; ++tenth) {
    usleep(100000);
    free(malloc(100));
    left = resident_mb();
    if (left <= 1.25 * start + 4) break;
  }
  printf("%.1f MB at the start, %.1f at most, %.1f after all was freed\n", start, most, left);
  return most > start + 300 && left <= 1.25 * start + 4 ? 0 : 1;
}

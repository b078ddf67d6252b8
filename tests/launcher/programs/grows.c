/* Holds 40 MB, then nothing; with an argument, allocates until its input ends. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { kBlocks = 400, kSize = 100 * 1000 };

static void allocate_and_free(void) {
  static void* blocks[kBlocks];
  for (int i = 0; i < kBlocks; i++) memset(blocks[i] = malloc(kSize), i, 1);
  for (int i = 0; i < kBlocks; i++) free(blocks[i]);
}

int main(int count, char** words) {
  struct pollfd input = {.fd = 0, .events = POLLIN};
  (void)words;
  do allocate_and_free();
  while (count > 1 && poll(&input, 1, 1) == 0);
  return 0;
}

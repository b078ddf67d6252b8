/* Allocates and frees blocks of all kinds: blocks MB.  A third of each round is held until the next. */
#include <stdlib.h>
#include <string.h>

int main(int count, char** words) {
  enum { kBlocks = 3000, kSizes = 4 };
  static const size_t sizes[kSizes] = {40, 1000, 9000, 400000};
  static void* held[kBlocks];
  size_t left = (size_t)(count > 1 ? atoi(words[1]) : 1) << 20;
  for (unsigned round = 0; left > 0; ++round)
    for (unsigned i = 0; i < kBlocks && left > 0; ++i) {
      size_t size = sizes[i % 100 == 0 ? 3 : i % 3];
      if (i % 3 == round % 3) free(held[i]), held[i] = NULL;
      if (held[i] == NULL) {
        held[i] = malloc(size);
        if (held[i] == NULL) return 1;
        memset(held[i], 1, 8);
        left -= size < left ? size : left;
      }
    }
  for (unsigned i = 0; i < kBlocks; ++i) free(held[i]);
  return 0;
}

// expect: hmalloc: free(0xPOINTER): double free, or never a block
// Slices of its own; they may wait in a cache or be back in the pool.
#include <stdlib.h>

int main(void) {
  char* volatile block = malloc(1 << 20);
  free(block);
  free(block);
}

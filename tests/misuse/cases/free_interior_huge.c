// expect: hmalloc: free(0xPOINTER): (points into a block, not to its start|not a block of hmalloc)
// The same in a mapping of its own, at the start of a chunk.
#include <stdlib.h>

int main(void) {
  char* volatile block = malloc(16 << 20);
  free(block + (4 << 20));
}

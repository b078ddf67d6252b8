// expect: hmalloc: free(0xPOINTER): points into a block, not to its start
// The same at a page of a large block.
#include <stdlib.h>

int main(void) {
  char* volatile block = malloc(1 << 20);
  free(block + 4096);
}

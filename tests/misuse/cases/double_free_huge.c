// expect: hmalloc: free(0xPOINTER): double free, or never a block
// A mapping of its own, cached or given back by then.
#include <stdlib.h>

int main(void) {
  char* volatile block = malloc(64 << 20);
  free(block);
  free(block);
}

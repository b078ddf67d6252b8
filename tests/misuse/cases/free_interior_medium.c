// expect: hmalloc: free(0xPOINTER): points into a block, not to its start
// The same inside a block of several pages.
#include <stdlib.h>

int main(void) {
  char* volatile block = malloc(20000);
  free(block + 4096);
}

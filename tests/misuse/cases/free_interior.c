// expect: hmalloc: free(0xPOINTER): points into a block, not to its start
// An array advanced before it was freed.
#include <stdlib.h>

int main(void) {
  char* volatile block = malloc(200);
  free(block + 64);
}

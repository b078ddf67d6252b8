// expect checked: hmalloc: free(0xPOINTER): double free, or never a block
// Another free lies between; the block still waits in this thread's cache.
#include <stdlib.h>

int main(void) {
  char* volatile block = malloc(100);
  char* volatile other = malloc(100);
  free(block);
  free(other);
  free(block);
}

// expect default: hmalloc: free(0xPOINTER): double free
// expect checked: hmalloc: free(0xPOINTER): double free, or never a block
// A block of no bytes is a block.
#include <stdlib.h>

int main(void) {
  char* volatile block = malloc(0);
  free(block);
  free(block);
}

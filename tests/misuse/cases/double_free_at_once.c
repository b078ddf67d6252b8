// expect default: hmalloc: free(0xPOINTER): double free
// expect checked: hmalloc: free(0xPOINTER): double free, or never a block
// The commonest of all: the same block twice in a row.
#include <stdlib.h>

int main(void) {
  char* volatile block = malloc(100);
  free(block);
  free(block);
}

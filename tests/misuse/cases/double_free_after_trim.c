// expect: hmalloc: free(0xPOINTER): double free, or never a block
// No cache holds the block any more.
#include <malloc.h>
#include <stdlib.h>

int main(void) {
  char* volatile block = malloc(100);
  char* volatile neighbour = malloc(100);
  free(block);
  malloc_trim(0);
  free(block);
  free(neighbour);
}

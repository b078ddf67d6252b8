// expect: hmalloc: free(0xPOINTER): double free, or never a block
// Its memory went back to the system at once, or with the trim.
#include <malloc.h>
#include <stdlib.h>

int main(void) {
  char* volatile block = malloc(64 << 20);
  free(block);
  malloc_trim(0);
  free(block);
}

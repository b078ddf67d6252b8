// expect: hmalloc: free(0xPOINTER): (double free|double free, or never a block)
// 20 kB twice in a row.
#include <stdlib.h>

int main(void) {
  char* volatile block = malloc(20000);
  free(block);
  free(block);
}

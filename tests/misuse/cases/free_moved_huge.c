// expect: hmalloc: free(0xPOINTER): double free, or never a block
// Where a block was before realloc moved its pages.
#include <stdlib.h>

int main(void) {
  char* volatile block = malloc(3 << 20);
  char* volatile behind = malloc(3 << 20);
  char* volatile grown = realloc(block, 40 << 20);
  char* volatile grown_too = realloc(behind, 80 << 20);
  free(grown_too == behind ? block : behind);
  free(grown);
}

// expect: hmalloc: free(0xPOINTER): misaligned pointer
// One byte off: a tag bit that was not cleared.
#include <stdlib.h>

int main(void) {
  char* volatile block = malloc(200);
  free(block + 1);
}

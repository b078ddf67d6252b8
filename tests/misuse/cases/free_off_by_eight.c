// expect: hmalloc: free(0xPOINTER): misaligned pointer
// A field's address instead of its structure's.
#include <stdlib.h>

int main(void) {
  char* volatile block = malloc(200);
  free(block + 8);
}

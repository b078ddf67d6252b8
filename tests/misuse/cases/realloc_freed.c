// expect default: hmalloc: realloc(0xPOINTER): double free
// expect checked: hmalloc: realloc(0xPOINTER): double free, or never a block
// Growing what has just been freed.
#include <stdlib.h>

int main(void) {
  char* volatile block = malloc(100);
  free(block);
  return realloc(block, 5000) == NULL;
}

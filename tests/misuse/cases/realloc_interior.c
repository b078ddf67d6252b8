// expect: hmalloc: realloc(0xPOINTER): points into a block, not to its start
// Growing from the middle.
#include <stdlib.h>

int main(void) {
  char* volatile block = malloc(200);
  return realloc(block + 16, 500) == NULL;
}

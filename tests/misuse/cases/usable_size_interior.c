// expect: hmalloc: malloc_usable_size(0xPOINTER): points into a block, not to its start
// Of the rest of a block there is no size.
#include <malloc.h>
#include <stdlib.h>

int main(void) {
  char* volatile block = malloc(200);
  return malloc_usable_size(block + 32) != 0;
}

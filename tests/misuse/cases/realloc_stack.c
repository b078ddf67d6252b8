// expect: hmalloc: realloc(0xPOINTER): not a block of hmalloc
// Growing what malloc never gave.
#include <stdlib.h>

int main(void) {
  char buffer[64] __attribute__((aligned(16)));
  char* volatile block = buffer;
  return realloc(block, 500) == NULL;
}

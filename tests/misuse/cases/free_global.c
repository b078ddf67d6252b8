// expect: hmalloc: free(0xPOINTER): not a block of hmalloc
// A static array.
#include <stdlib.h>

static char buffer[64] __attribute__((aligned(16)));

int main(void) {
  char* volatile block = buffer;
  free(block);
}
